#!/usr/bin/env bash
# The benchmarks of a whole cluster, every process of it on this machine. `./run bench` builds first and calls this.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
page=$root/docs/performance-parts.md
all_benchmarks=(feed get visit citycount aggregate)
default_documents=300000
default_seed=1

usage() {
  cat <<'HELP'
Usage: ./run bench [options] [feed] [get] [visit] [citycount] [aggregate]

Starts 3 storage nodes, 1 distributor and 1 fleet controller with redundancy 1 in a temporary folder, runs the named
benchmarks (without names: all) and prints lines `benchmark metric value unit`. `feed` runs first in any case, as the
others need the documents. A run of all benchmarks with the default documents writes its figures into
docs/performance-parts.md. The exit code is 1 if an answer was wrong or a benchmark failed.
(`aggregate` as the first word of `./run bench` is something else, the comparison with other systems: name it last.)

  --documents N   how many documents of 0.8 kB (300000)
  --seed N        what they are made from (1)
  --profile       records each process with perf meanwhile: the 15 symbols that take most of the time, by process, and
                  the CPU time of each, in build/profile; figures of such a run are not written to the page
  --no-page       leave docs/performance-parts.md as it is
  --bin DIR       folder of fjord, fjordd and fjord-bench (build/release/bin)
HELP
}

say() { printf '%s\n' "$*" >&2; }
fail() { say "bench: $*"; exit 1; }
usage_error() { say "bench: $*"; usage >&2; exit 2; }

bin=$root/build/release/bin
documents=$default_documents
seed=$default_seed
profile=no
write_page=yes
names=()
while [ $# -gt 0 ]; do
  case $1 in
    --documents | --seed | --bin)
      [ $# -ge 2 ] || usage_error "$1 needs a value"
      case $1 in --documents) documents=$2 ;; --seed) seed=$2 ;; --bin) bin=$2 ;; esac
      shift ;;
    --profile) profile=yes ;;
    --no-page) write_page=no ;;
    -h | --help) usage; exit 0 ;;
    feed | get | visit | citycount | aggregate) names+=("$1") ;;
    *) usage_error "there is no benchmark or option \"$1\"" ;;
  esac
  shift
done
[[ $documents =~ ^[1-9][0-9]*$ ]] || usage_error "--documents $documents: expected a number"
[[ $seed =~ ^[0-9]+$ ]] || usage_error "--seed $seed: expected a number"
for program in fjord fjordd fjord-bench; do
  [ -x "$bin/$program" ] || fail "no $program in $bin; ./run bench builds it"
done
if [ "$profile" = yes ]; then
  command -v perf >/dev/null || fail "--profile needs perf (Debian package: linux-perf)"
fi

wanted() {
  [ "${#names[@]}" -eq 0 ] || [ "$1" = feed ] || [[ " ${names[*]} " == *" $1 "* ]]
}
is_full_run() {
  local name
  for name in "${all_benchmarks[@]}"; do wanted "$name" || return 1; done
  [ "$documents" = "$default_documents" ] && [ "$seed" = "$default_seed" ] && [ "$profile" = no ]
}

# ------------------------------------------------------------------------------------------------------------- cluster

work=$(mktemp -d "${TMPDIR:-/tmp}/fjord-bench.XXXXXX")
cluster=$work/cluster
profile_dir=$root/build/profile
figures=$work/figures
perf_pids=()

clean_up() {
  local code=$?
  trap - EXIT INT TERM
  stop_perf
  if [ -e "$cluster/cluster.yaml" ]; then
    if [ "$code" -ne 0 ]; then
      say "bench: failed; the last lines of each log:"
      tail -n 5 "$cluster"/logs/*.log >&2 || true
    fi
    "$bin/fjord" local stop --dir "$cluster" || true
  fi
  rm -rf "$work"
  exit "$code"
}

# Lines `process pid`.
processes() {
  local file name pid rest
  for file in "$cluster"/run/*.pid; do
    name=$(basename "$file" .pid)
    read -r pid rest <"$file"
    printf '%s %s\n' "$name" "$pid"
  done
}

start_cluster() {
  local line
  line=$("$bin/fjord" local start --dir "$cluster" --storage 3 --distributors 1 --redundancy 1 --gateways 0)
  export FJORD_CLUSTER=${line#export FJORD_CLUSTER=}
  "$bin/fjord" schema deploy "$root/bench/listing.sd" >&2
}

# ------------------------------------------------------------------------------------------------------- measurements

# The CPU time of each process so far: lines `process seconds`.
cpu_times() {
  local name pid ticks
  ticks=$(getconf CLK_TCK)
  while read -r name pid; do
    # The second field, the program's name, may hold spaces; it ends with the last bracket.
    sed 's/.*) //' "/proc/$pid/stat" | awk -v name="$name" -v ticks="$ticks" '{ print name, ($12 + $13) / ticks }'
  done < <(processes)
}

# CPU time of a benchmark: that between two files of cpu_times, and what the client says of itself.
say_cpu_times() {
  local benchmark=$1 before=$2 after=$3
  {
    awk -v benchmark="$benchmark" 'NR == FNR { before[$1] = $2; next }
      { printf "cpu %s %s %.2f s\n", benchmark, $1, $2 - before[$1] }' "$before" "$after"
    awk -v benchmark="$benchmark" '$1 == benchmark && $2 == "client_cpu_s" {
      printf "cpu %s fjord-bench %.2f s\n", benchmark, $3 }' "$figures"
  } | tee -a "$work/cpu" >&2
}

report_memory() {
  local name pid
  while read -r name pid; do
    awk -v name="$name" '$1 == "VmHWM:" { printf "memory %s_peak_MiB %.1f MiB\n", name, $2 / 1024 }' "/proc/$pid/status"
  done < <(processes)
}

start_perf() {
  local benchmark=$1 name pid
  [ "$profile" = yes ] || return 0
  while read -r name pid; do
    perf record -q -F 499 -g -p "$pid" -o "$work/$benchmark.$name.perf" >/dev/null 2>>"$work/perf.log" &
    perf_pids+=($!)
  done < <(processes)
}

stop_perf() {
  local pid
  for pid in "${perf_pids[@]}"; do kill -INT "$pid" 2>/dev/null || true; done
  for pid in "${perf_pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  perf_pids=()
}

# The threads and symbols that take most of the time, for each process of one benchmark.
write_profile() {
  local benchmark=$1 recording name
  [ "$profile" = yes ] || return 0
  for recording in "$work/$benchmark".*.perf; do
    name=$(basename "$recording" .perf)
    {
      printf '# %s: share of the samples of this process, thread, symbol\n' "$name"
      perf report -i "$recording" --no-children -g none --stdio --sort comm,symbol 2>/dev/null |
        grep -v '^#' | sed -E '/^[[:space:]]*$/d; s/[- ]+$//' | head -n 15
      printf '\n# by thread\n'
      perf report -i "$recording" --no-children -g none --stdio --sort comm 2>/dev/null |
        grep -v '^#' | sed '/^[[:space:]]*$/d; s/[[:space:]]*$//' | head -n 15
    } >"$profile_dir/$name.txt" || true
    rm -f "$recording"
  done
}

run_benchmark() {
  local benchmark=$1 code=0
  local -a client=("$bin/fjord-bench" "$benchmark" --documents "$documents" --seed "$seed")
  say "-- $benchmark"
  cpu_times >"$work/before"
  start_perf "$benchmark"
  if [ "$profile" = yes ]; then
    client=(perf record -q -F 499 -g -o "$work/$benchmark.fjord-bench.perf" -- "${client[@]}")
  fi
  "${client[@]}" | tee -a "$figures" || code=$?
  stop_perf
  cpu_times >"$work/after"
  say_cpu_times "$benchmark" "$work/before" "$work/after"
  write_profile "$benchmark"
  return "$code"
}

# ---------------------------------------------------------------------------------------------------------------- page

goal_of() {
  case "$1 $2" in
    "feed docs_per_s") echo "≥ 60,000" ;;
    "get inflight64_per_s") echo "≥ 40,000" ;;
    "visit MB_per_s") echo "≥ 250" ;;
    "citycount time_s") echo "≤ 1" ;;
    "aggregate time_s") echo "≤ 0.13" ;;
    memory\ *) echo "≤ 1,024" ;;
  esac
}

table() {
  local commit benchmark metric value unit
  commit=$(git -C "$root" rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
  git -C "$root" diff --quiet HEAD -- 2>/dev/null || commit="$commit with local changes"
  printf 'Machine: %s cores, %s, %s GiB RAM, data on %s. ' "$(nproc)" \
    "$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)" \
    "$(awk '$1 == "MemTotal:" { printf "%.0f", $2 / 1048576 }' /proc/meminfo)" \
    "$(df --output=fstype "$work" | tail -n 1)"
  printf 'Date: %s. Commit: %s. Command: `./run bench`.\n' "$(date -u +%F)" "$commit"
  printf 'Load average before the run: %s.\n\n' "$load_before"
  printf '| Benchmark | Metric | Value | Unit | Goal |\n|---|---|---:|---|---|\n'
  while read -r benchmark metric value unit; do
    printf '| %s | %s | %s | %s | %s |\n' "$benchmark" "$metric" "$value" "$unit" "$(goal_of "$benchmark" "$metric")"
  done < <(grep -v ' client_cpu_s ' "$figures")
  printf '\nCPU time in seconds, over the whole benchmark with its repetitions:\n\n| Process |'
  printf ' %s |' "${all_benchmarks[@]}"
  printf '\n|---|---:|---:|---:|---:|---:|\n'
  awk '{ if (!($3 in seen)) { seen[$3] = 1; order[++rows] = $3 } used[$3, $2] = $4 }
    END { for (i = 1; i <= rows; ++i) printf "| %s | %s | %s | %s | %s | %s |\n", order[i], used[order[i], "feed"],
      used[order[i], "get"], used[order[i], "visit"], used[order[i], "citycount"], used[order[i], "aggregate"] }' "$work/cpu"
}

# Replaces what stands between the two marker comments.
update_page() {
  grep -q '^<!-- bench:begin' "$page" && grep -q '^<!-- bench:end' "$page" || fail "$page has lost its marker comments"
  table >"$work/table"
  awk -v table="$work/table" '
    /^<!-- bench:end/ { skip = 0 }
    !skip { print }
    /^<!-- bench:begin/ { skip = 1; while ((getline line < table) > 0) print line }' "$page" >"$work/page"
  cat "$work/page" >"$page"
  /usr/bin/python3 -B "$root/test/house/reflow.py" "${page#"$root"/}" >&2
  say "bench: the table in docs/performance-parts.md is new"
}

# ---------------------------------------------------------------------------------------------------------------- main

trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

load_before=$(cut -d ' ' -f 1 /proc/loadavg)
if awk -v load="$load_before" 'BEGIN { exit !(load > 0.5) }'; then
  say "bench: something else keeps this machine busy (load average $load_before); the figures will suffer"
fi
if [ "$profile" = yes ]; then
  rm -rf "$profile_dir"
  mkdir -p "$profile_dir"
fi
start_cluster
failed=()
for name in "${all_benchmarks[@]}"; do
  wanted "$name" || continue
  run_benchmark "$name" && continue
  failed+=("$name")
  [ "$name" = feed ] && break
done
report_memory | tee -a "$figures"
if [ "$profile" = yes ]; then
  cp "$work/cpu" "$profile_dir/cpu.txt"
  say "bench: profiles are in $profile_dir"
fi
[ "${#failed[@]}" -eq 0 ] || fail "failed: ${failed[*]}"
if is_full_run && [ "$write_page" = yes ]; then update_page; fi
