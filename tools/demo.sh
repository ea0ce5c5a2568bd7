#!/usr/bin/env bash
# The main job from end to end: a cluster of separate processes stores this machine's package catalogue, a MapReduce job
# aggregates it while a storage node is killed, and awk says whether the result is right.
# Usage: tools/demo.sh [folder of fjord and fjordd]; `./run demo` builds first.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=${1:-$root/build/release/bin}
if [ ! -x "$bin/fjord" ] || [ ! -x "$bin/fjordd" ]; then
  echo "demo: no fjord and fjordd in $bin; ./run demo builds them" >&2
  exit 1
fi
fjord() { "$bin/fjord" "$@"; }

work=$(mktemp -d "${TMPDIR:-/tmp}/fjord-demo.XXXXXX")
cluster=$work/cluster
clean_up() {
  local code=$?
  trap - EXIT
  if [ -e "$cluster/cluster.yaml" ]; then
    if [ "$code" -ne 0 ]; then
      echo "demo: failed; the last lines of each log:" >&2
      tail -n 5 "$cluster"/logs/*.log >&2 || true
    fi
    fjord local stop --dir "$cluster" || true
  fi
  rm -rf "$work"
  exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

now_ms() { date +%s%3N; }
began_ms=$(now_ms)
step_ms=$began_ms
say() { printf '%s\n' "$*" >&2; }
begin() { step_ms=$(now_ms); printf -- '-- %s\n' "$*" >&2; }
took() { local ms=$(($(now_ms) - step_ms)); printf '   %s (%d.%03d s)\n' "$*" $((ms / 1000)) $((ms % 1000)) >&2; }
fail() { printf 'demo: %s\n' "$*" >&2; exit 1; }
# value_of KEY: of a line of JSON on standard input
value_of() { python3 -c 'import json, sys; print(json.loads(sys.stdin.read())[sys.argv[1]])' "$1"; }

wait_healthy() {
  local deadline=$(($(now_ms) + 60000))
  until fjord status >"$work/status"; do
    [ "$(now_ms)" -lt "$deadline" ] || { cat "$work/status" >&2; fail "the cluster is not healthy after 60 s"; }
    sleep 0.1
  done
}

# ---------------------------------------------------------------------------------------------------------- catalogue

catalogue() {
  apt-cache dumpavail >"$1" 2>/dev/null || true
  [ -s "$1" ] && { echo "apt-cache dumpavail"; return; }
  local -a as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
  "${as_root[@]}" apt-get update -q </dev/null >/dev/null 2>&1 || true
  apt-cache dumpavail >"$1" 2>/dev/null || true
  [ -s "$1" ] && { echo "apt-cache dumpavail"; return; }
  cp /var/lib/dpkg/status "$1"
  echo "/var/lib/dpkg/status (there are no package lists)"
}

# Debian's control format on standard input, a feed on standard output.
make_feed() {
  python3 -c '
import json, sys

TEXT = {"Package": "name", "Version": "version", "Section": "section", "Priority": "priority",
        "Maintainer": "maintainer", "Architecture": "architecture", "Depends": "depends", "Description": "description", "Homepage": "homepage",
        "Filename": "filename", "SHA256": "sha256"}
NUMBERS = {"Installed-Size": "installed_size", "Size": "download_size"}

def fields_of(stanza):
    fields, name = {}, None
    for line in stanza.split("\n"):
        if line[:1] in (" ", "\t"):
            if name: fields[name] += "\n" + line.strip()
            continue
        key, colon, value = line.partition(":")
        name = TEXT.get(key) if colon else None
        if name: fields[name] = value.strip()
        if colon and key in NUMBERS: fields[NUMBERS[key]] = int(value)
    return fields

stanza = []
def flush():
    fields = fields_of("".join(stanza).rstrip("\n"))
    stanza.clear()
    if "name" in fields and "version" in fields:
        id = "id:debian:package::%s/%s" % (fields["name"], fields["version"])
        print(json.dumps({"put": id, "fields": fields}, ensure_ascii=False))

sys.stdin.reconfigure(encoding="utf-8", errors="replace")
sys.stdout.reconfigure(encoding="utf-8")
for line in sys.stdin:
    if line.strip(): stanza.append(line)
    elif stanza: flush()
if stanza: flush()
'
}

# The same question put to awk: section, count, sum, min, max and average of Installed-Size, from Debian's control format.
# Of stanzas with the same name and version the last one counts, as the last put of a document does.
ask_awk() {
  LC_ALL=C awk '
    function end_of_stanza() {
      if (name != "" && version != "") {
        id = name "/" version
        section_of[id] = section; size_of[id] = size
      }
      name = version = section = size = ""
    }
    /^$/ { end_of_stanza() }
    /^Package:/ { name = $2 }
    /^Version:/ { version = $2 }
    /^Section:/ { section = $2 }
    /^Installed-Size:/ { size = $2 }
    END {
      end_of_stanza()
      for (id in section_of) {
        if (section_of[id] == "" || size_of[id] == "") continue
        s = section_of[id]; v = size_of[id] + 0
        if (!(s in count) || v < least[s]) least[s] = v
        if (!(s in count) || v > most[s]) most[s] = v
        ++count[s]; sum[s] += v
      }
      for (s in count) {
        printf "%s\t%d\t%.0f\t%.0f\t%.0f\t%.17g\n", s, count[s], sum[s], least[s], most[s], sum[s] / count[s]
      }
    }' "$1" | LC_ALL=C sort
}

# `fjord job results -o json` in the form of ask_awk.
as_table() {
  python3 -c '
import json, sys
for line in sys.stdin:
    result = json.loads(line)
    v = result["value"]
    print("%s\t%d\t%d\t%d\t%d\t%.17g" % (result["key"], v["count"], v["sum"], v["min"], v["max"], v["avg"]))
' | LC_ALL=C sort
}

# -------------------------------------------------------------------------------------------------------------- steps

begin "starting 1 fleet controller, 2 distributors, 4 storage nodes and 1 gateway; every document is kept twice"
exports=$(fjord local start --dir "$cluster" --storage 4 --distributors 2 --redundancy 2)
export FJORD_CLUSTER=${exports##*FJORD_CLUSTER=}
gateway=http://$(fjord local status --dir "$cluster" | awk '$1 == "gateway.0" { print $4 }')
took "8 processes serve, distributors at $FJORD_CLUSTER, HTTP clients at $gateway/"

begin "reading this machine's package catalogue"
source=$(catalogue "$work/catalogue")
make_feed <"$work/catalogue" >"$work/feed.jsonl"
documents=$(wc -l <"$work/feed.jsonl")
took "$documents packages, $(du -m "$work/feed.jsonl" | cut -f1) MB, from $source"

begin "deploying the document type"
cat >"$work/package.sd" <<'SCHEMA'
document package {
  field name type string { header }
  field version type string { header }
  field section type string { header }
  field priority type string { header }
  field architecture type string { header }
  field installed_size type int { header }
  field download_size type long { header }
  field maintainer type string { body }
  field depends type string { body }
  field description type string { body }
  field homepage type string { body }
  field filename type string { body }
  field sha256 type string { body }
}
SCHEMA
fjord schema deploy "$work/package.sd" >&2
took "deployed"

begin "feeding $documents documents"
progress=auto
[ -t 2 ] || progress=always
fjord feed --progress "$progress" "$work/feed.jsonl" >"$work/feed.json"
say "   $(cat "$work/feed.json")"
[ "$(value_of ok <"$work/feed.json")" = "$documents" ] || fail "not all documents were acknowledged"
took "all acknowledged"

begin "reading one of them over HTTP"
# The id has characters that a path escapes; the longest of the answer are cut.
path=$(head -n 1 "$work/feed.jsonl" | python3 -c '
import json, sys, urllib.parse
print("/document/v1/debian/package/docid/" + urllib.parse.quote(json.loads(sys.stdin.readline())["put"].split("::", 1)[1], safe=""))')
say "   \$ curl -i $gateway$path"
curl -sS -i --max-time 30 "$gateway$path" | tr -d '\r' >"$work/answer"
head -n 1 "$work/answer" | grep -q '^HTTP/1.1 200 ' || { cat "$work/answer" >&2; fail "the gateway did not answer with the document"; }
cut -c 1-160 "$work/answer" | sed 's/^/   /' >&2
took "answered by gateway.0"

begin "counting packages and summing sizes by section inside the storage nodes, and killing storage.2 while they work"
victim=storage.2
for attempt in 1 2 3 4 5 6 7 8; do
  # One task at a time on each node, so that there is something to interrupt; the delay differs from attempt to attempt.
  job=$(fjord job run fieldstats --type package --param group=section --param value=installed_size \
    --visitors-per-node 1)
  sleep "0.0$((attempt * 3 % 10))"
  fjord local kill --dir "$cluster" "$victim"
  killed_us=$(date +%s%6N)
  fjord job show "$job" -o json >"$work/job_at_kill.json"
  fjord job watch "$job" --progress "$progress" -o json >"$work/job.json" || fail "the job failed: $(cat "$work/job.json")"
  finished_us=$(value_of finished_unix_us <"$work/job.json")
  phase=$(value_of phase <"$work/job_at_kill.json")
  repeated=$(value_of tasks_repeated <"$work/job.json")
  if [[ $phase =~ ^(map|reduce)$ ]] && [ "$finished_us" -gt "$killed_us" ] && [ "$repeated" -gt 0 ]; then break; fi
  say "   attempt $attempt caught the job in phase $phase with nothing to repeat; once more"
  [ "$attempt" -lt 8 ] || fail "the job could not be caught while it worked"
  fjord local restart --dir "$cluster" "$victim"
  wait_healthy
done
mapped="$(value_of map_tasks_done <"$work/job_at_kill.json") of $(value_of map_tasks <"$work/job_at_kill.json")"
say "   killed in phase $phase with $mapped map tasks done; the job ended $(((finished_us - killed_us) / 1000)) ms later;" \
  "$repeated tasks were begun again"
documents_read=$(value_of documents_read <"$work/job.json")
took "$job is done: $documents_read documents, $(value_of results <"$work/job.json") results"

begin "reading the results, which are documents of the cluster themselves"
fjord job results "$job" -o json | as_table >"$work/ours"
took "$(wc -l <"$work/ours") sections"
{
  printf '%-24s %10s %16s %14s\n' SECTION PACKAGES 'SUM (KiB)' 'MEAN (KiB)'
  sort -t "$(printf '\t')" -k3,3nr "$work/ours" | awk -F '\t' 'NR <= 10 { printf "%-24s %10d %16d %14.1f\n", $1, $2, $3, $6 }'
}

begin "asking awk the same"
ask_awk "$work/catalogue" >"$work/theirs"
[ -s "$work/theirs" ] || fail "awk found nothing"
if ! diff -u --label awk --label fjord "$work/theirs" "$work/ours" >&2; then
  fail "the results differ"
fi
took "count, sum, minimum, maximum and mean of all $(wc -l <"$work/theirs") sections: identical"
echo identical

begin "starting $victim again"
fjord local restart --dir "$cluster" "$victim"
wait_healthy
took "it has what it missed: $(sed -n 2p "$work/status")"

begin "stopping the cluster"
fjord local stop --dir "$cluster"
took "stopped"
total_ms=$(($(now_ms) - began_ms))
printf 'demo: done in %d.%d s\n' $((total_ms / 1000)) $((total_ms % 1000 / 100)) >&2
