#!/usr/bin/env bash
# The speed of the HTTP gateway, with public load generators. `./run bench http` builds first and calls this.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

usage() {
  cat <<'HELP'
Usage: ./run bench http [options]

Starts 3 storage nodes, 1 distributor, 1 fleet controller and 1 gateway in a temporary folder, feeds documents, and prints
a table: operations a second, and for one operation the processor time and the thread changes of the gateway, and the processor
time of the load generator, which runs on the same cores. The clients are h2load, wrk and curl. The exit code is 1 if any answer was not 200.

  --documents N    how many documents of 0.8 kB (60000)
  --operations N   gets and puts of each measurement (200000; with --instructions 3000)
  --clients        also feeds four times the documents with `vespa feed` (vespacli from PyPI) and vespa-feed-client (Maven), which
                   are installed below ~/.cache for that
  --instructions   runs the gateway in valgrind and counts the instructions of one operation instead: a figure that other
                   work on the machine does not change
  --bin DIR        folder of fjord, fjordd and fjord-bench (build/release/bin)
HELP
}

say() { printf '%s\n' "$*" >&2; }
fail() { say "bench http: $*"; exit 1; }

bin=$root/build/release/bin
documents=60000
operations=
instructions=no
clients=no
while [ $# -gt 0 ]; do
  case $1 in
    --documents | --operations | --bin)
      [ $# -ge 2 ] || { usage >&2; exit 2; }
      case $1 in --documents) documents=$2 ;; --operations) operations=$2 ;; --bin) bin=$2 ;; esac
      shift ;;
    --instructions) instructions=yes ;;
    --clients) clients=yes ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
tools=(h2load curl gzip)
if [ "$instructions" = yes ]; then
  operations=${operations:-3000}
  tools+=(valgrind callgrind_control)
else
  operations=${operations:-200000}
  tools+=(wrk)
fi
for tool in "${tools[@]}"; do command -v "$tool" >/dev/null || fail "there is no $tool (packages-bench.txt, packages-check.txt)"; done

export PYTHONPATH=$root/test/integration  # http_clients.py
work=$(mktemp -d)
cluster=$work/cluster
counted_pid=

clean_up() {
  local code=$?
  trap - EXIT
  if [ -n "$counted_pid" ]; then
    kill "$counted_pid" 2>/dev/null || true
    wait "$counted_pid" 2>/dev/null || true  # It writes a file at its end.
  fi
  [ ! -e "$cluster/cluster.yaml" ] || "$bin/fjord" local stop --dir "$cluster" >&2 || true
  rm -rf "$work"
  exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# ------------------------------------------------------------------------------------------------------------- cluster

start_cluster() {
  local line
  line=$("$bin/fjord" local start --dir "$cluster" --storage 3 --distributors 1 --redundancy 1 --gateways 1)
  export FJORD_CLUSTER=${line#export FJORD_CLUSTER=}
  "$bin/fjord" schema deploy "$root/bench/listing.sd" >&2
  "$bin/fjord-bench" feed --documents "$documents" >&2
  server=$(sed -n '/^gateways:/,/^[a-z]*:$/s/.*- address: //p' "$cluster/cluster.yaml" | head -n 1)
  read -r gateway_pid _ <"$cluster/run/gateway.0.pid"
}

# A document of 1 MB, and the body of a put of 0.8 kB.
make_inputs() {
  {
    printf '{"fields":{"city":"Brno","price":1,"description":"'
    yes 'words of a long description ' | tr -d '\n' | head -c 1000000 || true
    printf '"}}'
  } >"$work/large.json"
  curl -sSf -o "$work/answer" --data-binary "@$work/large.json" -H 'Content-Type: application/json' "http://$server$docid/large"
  curl -sSf "http://$server$docid/7" | sed 's/^.*"fields":/{"fields":/' >"$work/put.json"
  seq 0 7 $((documents - 1)) | sed "s|^|$docid/|" >"$work/paths"
}

# -------------------------------------------------------------------------------------------------------- measurements

ticks() { sed 's/.*) //' "/proc/$gateway_pid/stat" | awk '{ print $12, $13 }'; }
switches() { cat /proc/"$gateway_pid"/task/*/status | awk '/ctxt_switches/ { sum += $2 } END { print sum }'; }

# The number of operations that a load generator reports; fails if any was not answered with 200.
operations_of() {
  if grep -q '"feeder.ok.count"' "$1"; then
    grep -q '"feeder.error.count": 0,' "$1" || fail "an operation failed: $(grep error "$1")"
    sed -n 's/^ *"feeder.ok.count": \([0-9]*\),.*/\1/p' "$1"
  elif grep -q '^second fed ' "$1"; then
    grep -q '^second fed [0-9]* failed 0 ' "$1" || fail "an operation failed: $(grep fed "$1")"
    awk '/ fed [0-9]* failed 0 / { sum += $3 } END { print sum }' "$1"
  elif grep -q '^status codes:' "$1"; then
    grep -q ' 0 3xx, 0 4xx, 0 5xx$' "$1" || fail "an operation failed: $(grep '^status codes:' "$1")"
    sed -n 's/^status codes: \([0-9]*\) 2xx.*/\1/p' "$1"
  else
    ! grep -q 'Non-2xx' "$1" || fail "an operation failed: $(grep 'Non-2xx' "$1")"
    awk '/requests in/ { print $1 }' "$1"
  fi
}

# NAME COMMAND...: a row of the table.
measure() {
  local TIMEFORMAT='%U %S' name=$1 user system user_after system_after changes begin end count
  shift
  read -r user system < <(ticks)
  changes=$(switches)
  begin=$(date +%s%N)
  { time "$@" >"$work/out" 2>&1; } 2>"$work/client_seconds" || fail "$name: $(tail -n 3 "$work/out")"
  end=$(date +%s%N)
  read -r user_after system_after < <(ticks)
  count=$(operations_of "$work/out")
  awk -v name="$name" -v count="$count" -v ns=$((end - begin)) -v user=$((user_after - user)) \
    -v client="$(tail -n 1 "$work/client_seconds")" -v in_kernel=$((system_after - system)) -v changes=$(($(switches) - changes)) -v hz="$(getconf CLK_TCK)" 'BEGIN {
      split(client, seconds, " ")
      printf "| %s | %.0f | %.1f | %.1f | %.2f | %.1f |\n", name, count / ns * 1e9, user / hz * 1e6 / count,
        in_kernel / hz * 1e6 / count, changes / count, (seconds[1] + seconds[2]) * 1e6 / count }'
}

# The native client and HTTP with the same aggregation, in turns of a moment each: the best and the median of 40 times.
aggregations() {
  local spec='{"type":"listing","group_by":["city"],"aggregates":["count()","sum(price)"]}' i native http
  for i in 1 2 3 4 5; do
    "$bin/fjord-bench" query --spec "$spec" --output "$work/rows" --repeat 8 >>"$work/native"
    for _ in 1 2 3 4 5 6 7 8; do
      curl -sSf -o "$work/answer" -w '%{time_total}\n' --data-binary "$spec" "http://$server/aggregate/v1" >>"$work/http"
    done
  done
  native=$(awk '$2 == "time_s" { print $3 }' "$work/native" | median)
  http=$(median <"$work/http")
  awk -v http="$http" -v native="$native" 'BEGIN {
    printf "| aggregation, median | %.2f ms, native %.2f ms | | | | |\n", http * 1e3, native * 1e3 }'
  awk -v http="$(sort -g "$work/http" | head -n 1)" -v native="$(awk '$2 == "time_s" { print $3 }' "$work/native" | sort -g | head -n 1)" 'BEGIN {
    printf "| aggregation, best | %.2f ms, native %.2f ms | | | | |\n", http * 1e3, native * 1e3 }'
}

median() { sort -g | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

# The feeding clients of Vespa as they come, with 8 connections.
feeding_clients() {
  local programs class_path
  programs=$(python3 -B -c 'import http_clients; print(http_clients.python_folder())') || fail "no vespacli"
  class_path=$(python3 -B -c 'import http_clients; print(http_clients.java_class_path())') || fail "no vespa-feed-client"
  "$bin/fjord" visit --type listing >"$work/once.jsonl"
  cat "$work/once.jsonl" "$work/once.jsonl" "$work/once.jsonl" "$work/once.jsonl" >"$work/feed.jsonl"
  HOME=$work measure 'put, vespa feed' "$programs/vespa" feed "$work/feed.jsonl" -t "http://$server"
  measure 'put, vespa-feed-client, start of Java included' java -cp "$class_path" "$root/bench/http/FeedFile.java" "http://$server" "$work/feed.jsonl"
  awk '$1 == "second" { printf "| its second feed | %.0f | | | | |\n", $NF }' "$work/out"
}

streamed_visit() {
  local bytes seconds
  read -r bytes seconds < <(curl -sSf -o /dev/null -w '%{size_download} %{time_total}\n' \
    -H 'Accept: application/jsonl' "http://$server$docid?stream=true")
  awk -v bytes="$bytes" -v seconds="$seconds" 'BEGIN { printf "| streamed visit as JSONL | %.0f MB/s | | | | |\n", bytes / seconds / 1e6 }'
}

table() {
  local url=http://$server
  printf 'Load average before: %s. %s operations, %s documents.\n\n' "$(cut -d ' ' -f 1-3 /proc/loadavg)" "$operations" "$documents"
  printf '| | operations/s | user, µs | system, µs | thread changes | load generator, µs |\n|---|---:|---:|---:|---:|---:|\n'
  measure 'get, HTTP/2, 64 streams' h2load -n "$operations" -c 1 -m 64 -B "$url" -i "$work/paths"
  measure 'get, HTTP/1.1, 64 connections' wrk -t 1 -c 64 -d 5s "$url$docid/7"
  measure 'get, HTTP/1.1, one at a time' wrk -t 1 -c 1 -d 5s --latency "$url$docid/7"
  printf '| its median | %s | | | |\n' "$(awk '$1 == "50%" { print $2 }' "$work/out")"
  # Before the puts, because it compares each document with what was fed.
  "$bin/fjord-bench" get --documents "$documents" | awk '$1 == "get" { printf "| native client: %s | %s %s | | | | |\n", $2, $3, $4 }'
  measure 'put, HTTP/2, 64 streams' h2load -n "$operations" -c 1 -m 64 -d "$work/put.json" \
    -H 'content-type: application/json' -B "$url" -i "$work/paths"
  measure 'get of 1 MB, HTTP/2, 4 streams' h2load -n 1000 -c 1 -m 4 "$url$docid/large"
  measure 'get of 1 MB, HTTP/1.1, 4 connections' wrk -t 1 -c 4 -d 5s "$url$docid/large"
  streamed_visit
  aggregations
  [ "$clients" = no ] || feeding_clients
  printf '\nLoad average after: %s.\n' "$(cut -d ' ' -f 1-3 /proc/loadavg)"
}

# NAME OPERATIONS COMMAND...: the instructions of one operation. The command ends with -n and takes the number.
count_instructions() {
  local name=$1 count=$2 total
  shift 2
  "$@" $((count / 10 + 1)) >"$work/out" 2>&1
  callgrind_control -i on "$counted_pid" >/dev/null 2>&1
  "$@" "$count" >"$work/out" 2>&1
  callgrind_control -i off "$counted_pid" >/dev/null 2>&1
  callgrind_control -d "$counted_pid" >/dev/null 2>&1
  operations_of "$work/out" >/dev/null
  dumps=$((dumps + 1))
  total=$(awk '$1 == "summary:" || $1 == "totals:" { sum = $2 } END { print sum }' "$work/counts.$dumps")
  printf '| %s | %d |\n' "$name" $((total / count))
}

instruction_table() {
  local url
  server=127.0.0.1:$(($(awk -F: '{ print $2 }' <<<"$server") + 1))
  url=http://$server
  dumps=0
  sed "/^gateways:/,\$s/- address: .*:[0-9]*\$/&/; s|- address: 127.0.0.1:$((${server##*:} - 1))\$|- address: $server|" \
    "$cluster/cluster.yaml" >"$work/counted.yaml"
  valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file="$work/counts" \
    "$bin/fjordd" --config "$work/counted.yaml" --node gateway.0 >"$work/counted.log" 2>&1 </dev/null &
  counted_pid=$!
  curl -sf --retry 100 --retry-delay 1 --retry-connrefused -o "$work/answer" "$url/state/v1/health" || fail "$(tail -n 3 "$work/counted.log")"
  printf '| | instructions of the gateway |\n|---|---:|\n'
  count_instructions 'get, HTTP/2, 64 streams' "$operations" h2load -c 1 -m 64 -B "$url" -i "$work/paths" -n
  count_instructions 'get, HTTP/1.1, 16 connections' "$operations" h2load --h1 -c 16 -B "$url" -i "$work/paths" -n
  count_instructions 'put, HTTP/2, 64 streams' "$operations" h2load -c 1 -m 64 -d "$work/put.json" \
    -H 'content-type: application/json' -B "$url" -i "$work/paths" -n
  # As feeding clients send it.
  gzip -c "$work/put.json" >"$work/put.json.gz"
  count_instructions 'put, gzip, HTTP/2, 64 streams' "$operations" h2load -c 1 -m 64 -d "$work/put.json.gz" \
    -H 'content-type: application/json' -H 'content-encoding: gzip' -B "$url" -i "$work/paths" -n
  count_instructions 'get of 1 MB, HTTP/2, 4 streams' 20 h2load -c 1 -m 4 "$url$docid/large" -n
}

docid=/document/v1/bench/listing/docid
start_cluster
make_inputs
if [ "$instructions" = yes ]; then instruction_table; else table; fi
