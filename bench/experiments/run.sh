#!/usr/bin/env bash
# Runs an experiment of the seeds again. `./run experiment NAME` builds first and calls this.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
name=${1:-}
[ $# -gt 0 ] && shift
case $name in
  slotfile-size | background-work | many-documents | placement | elasticity | tuner-grid) ;;
  visiting-empty | output-documents | visitor-threads | bandwidth | tuner-grid-real | job-foreground) ;;
  balance-simulated | balance-causality | balance-live | balance-sklik | tars-simulated | tars-live) ;;
  ring-offload | ring-offload-live | keyword-search | load-counting | distributor-cores) ;;
  *)
    printf 'Usage: ./run experiment NAME [--quick]\nNAME: slotfile-size, background-work, many-documents, placement, elasticity, tuner-grid,\n' >&2
    printf '      visiting-empty, output-documents, visitor-threads, bandwidth, tuner-grid-real, job-foreground,\n      balance-simulated, balance-causality, balance-live, balance-sklik, tars-simulated, tars-live,\n      ring-offload, ring-offload-live, keyword-search, load-counting,\n      distributor-cores (docs/experiments)\n' >&2
    exit 2
    ;;
esac
given=$#
output=$root/build/experiments/$name
page=$root/docs/experiments/$name.md
mkdir -p "$output"
work=$(mktemp -d "${TMPDIR:-/tmp}/fjord-experiment.XXXXXX")
trap 'rm -rf "$work"' EXIT
program=$root/build/release/bin/fjord-experiment-$name
if [ "$name" = slotfile-size ]; then
  "$program" --directory "$work" --output "$output" "$@"
  /usr/bin/python3 "$root/bench/experiments/plot_slotfile_size.py" "$output" >"$output/tables.md"
  printf 'CSV and plots are in %s\n' "$output" >&2
elif [ "$name" = placement ]; then
  "$program" --output "$output" "$@"
  /usr/bin/python3 "$root/bench/experiments/plot_placement.py" "$output" >"$output/tables.md"
  printf 'CSV and plots are in %s\n' "$output" >&2
elif [ "$name" = elasticity ]; then
  /usr/bin/python3 -B "$root/bench/experiments/elasticity.py" --output "$output" "$@"
  /usr/bin/python3 "$root/bench/experiments/plot_elasticity.py" "$output" >"$output/tables.md"
  printf 'CSV and plot are in %s\n' "$output" >&2
elif [ -e "$root/bench/experiments/plot_${name//-/_}.py" ]; then
  [ "$name" = keyword-search ] && set -- --directory "$work" "$@"
  status=0
  "$program" --output "$output" "$@" >"$output/tables.md" || status=$?
  [ "$status" = 0 ] || { cat "$output/tables.md"; exit "$status"; }
  /usr/bin/python3 -B "$root/bench/experiments/plot_${name//-/_}.py" "$output"
  printf 'CSV and plots are in %s\n' "$output" >&2
elif [ ! -e "$root/bench/experiments/$name.cpp" ] && [ -e "$root/bench/experiments/${name//-/_}.py" ]; then
  /usr/bin/python3 -B "$root/bench/experiments/${name//-/_}.py" --output "$output" "$@" >"$output/tables.md"
  printf 'CSV and plots are in %s\n' "$output" >&2
else
  "$program" --directory "$work" "$@" >"$output/tables.md"
fi
if [ "$given" -gt 0 ]; then
  cat "$output/tables.md"
  exit 0
fi
{
  printf 'Commit %s, %s, %s cores. Command: `./run experiment %s`.\n' \
    "$(git -C "$root" rev-parse --short=12 HEAD)" "$(date -u +%F)" "$(nproc)" "$name"
  cat "$output/tables.md"
} >"$work/new"
awk -v table="$work/new" '
  /^<!-- end of the tables/ { skip = 0 }
  !skip { print }
  /^<!-- the tables/ { skip = 1; while ((getline line < table) > 0) print line }' "$page" >"$work/page"
cat "$work/page" >"$page"
/usr/bin/python3 -B "$root/test/house/reflow.py" "${page#"$root"/}" >&2
