#!/usr/bin/env bash
# Compares storage engines. `./run bench engine` builds first and calls this.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
page=$root/docs/performance-engine.md
bin=$root/build/release/bin
directory=${TMPDIR:-/tmp}
write_page=yes
command="./run bench engine"

usage() {
  cat <<'HELP'
Usage: ./run bench engine [options]

Puts, overwrites, gets, iterates, selects from and removes the same documents with each engine, and prints what it took
and how it compares. A run of all engines with the default documents writes its tables into docs/performance-engine.md.
The exit code is 1 if an engine failed or gave a wrong answer.

  --no-page       leave docs/performance-engine.md as it is
  --bin DIR       folder of fjord-bench-engine (build/release/bin)

Further options are those of fjord-bench-engine:

HELP
  "$bin/fjord-bench-engine" --help
}

say() { printf '%s\n' "$*" >&2; }
fail() { say "bench engine: $*"; exit 1; }

options=()
while [ $# -gt 0 ]; do
  case $1 in
    --directory | --bin)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case $1 in --directory) directory=$2 ;; --bin) bin=$2 ;; esac
      shift ;;
    --no-page) write_page=no ;;
    -h | --help) usage; exit 0 ;;
    --repeat) command="$command $1 ${2:?$1 needs a value}"; options+=("$1" "$2"); shift ;;
    --csv) options+=("$1" "${2:?$1 needs a value}"); shift ;;
    *) options+=("$1"); write_page=no ;;  # not all of it, or of something else
  esac
  shift
done
[ -x "$bin/fjord-bench-engine" ] || fail "no fjord-bench-engine in $bin; ./run bench engine builds it"

work=$(mktemp -d "$directory/fjord-bench-engine.XXXXXX")
child=
clean_up() {
  local code=$?
  trap - EXIT INT TERM
  if [ -n "$child" ]; then kill "$child" 2>/dev/null && wait "$child" || true; fi
  rm -rf "$work"
  exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

heading() {
  local commit
  commit=$(git -C "$root" rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
  git -C "$root" diff --quiet HEAD -- 2>/dev/null || commit="$commit with local changes"
  printf 'Machine: %s cores, %s, %s GiB RAM, data on %s. ' "$(nproc)" \
    "$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)" \
    "$(awk '$1 == "MemTotal:" { printf "%.0f", $2 / 1048576 }' /proc/meminfo)" \
    "$(df --output=fstype "$work" | tail -n 1)"
  printf 'Date: %s. Commit: %s. Command: `%s`.\n' "$(date -u +%F)" "$commit" "$command"
  printf 'Load average before the run: %s. %s.\n' "$load_before" "$versions"
}

# Replaces what stands between the two marker comments.
update_page() {
  grep -q '^<!-- engine:begin' "$page" && grep -q '^<!-- engine:end' "$page" || fail "$page has lost its marker comments"
  { heading; cat "$work/tables.md"; } >"$work/new"
  awk -v table="$work/new" '
    /^<!-- engine:end/ { skip = 0 }
    !skip { print }
    /^<!-- engine:begin/ { skip = 1; while ((getline line < table) > 0) print line }' "$page" >"$work/page"
  cat "$work/page" >"$page"
  /usr/bin/python3 -B "$root/test/house/reflow.py" "${page#"$root"/}" >&2
  say "bench engine: the tables in docs/performance-engine.md are new"
}

load_before=$(cut -d ' ' -f 1 /proc/loadavg)
if awk -v load="$load_before" 'BEGIN { exit !(load > 0.5) }'; then
  say "bench engine: something else keeps this machine busy (load average $load_before); the figures will suffer"
fi
versions=$(dpkg-query -W -f='${Package} ${Version}, ' libleveldb-dev librocksdb-dev libwiredtiger-dev 2>/dev/null || true)
versions=${versions%, }

"$bin/fjord-bench-engine" "${options[@]}" --directory "$work" --markdown "$work/tables.md" &
child=$!
code=0
wait "$child" || code=$?
child=
if [ "$code" -eq 0 ] && [ "$write_page" = yes ]; then update_page; fi
exit "$code"
