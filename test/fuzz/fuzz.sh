#!/usr/bin/env bash
# Runs one libFuzzer program: fuzz.sh <program> <folder of seeds> <work folder>. FJORD_FUZZ_SECONDS says how long (60).
#
# Below the work folder, corpus/<target> keeps every input that reached new code, for the next run; findings/<target>-*
# are the inputs that failed, <target>.log is what libFuzzer said and <target>.summary the figures. Ends with the exit
# code of the program.
set -uo pipefail

program=$1 seeds=$2 work=$3
target=$(basename "$program")
target=${target%_fuzz}
seconds=${FJORD_FUZZ_SECONDS:-60}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

mkdir -p "$work/corpus/$target" "$work/findings" || exit
options=(-max_total_time="$seconds" -timeout=30 -rss_limit_mb=3000 -print_final_stats=1
         -artifact_prefix="$work/findings/$target-")
[ -f "$here/$target.dict" ] && options+=(-dict="$here/$target.dict")
before=$(ls "$work/findings")
"$program" "${options[@]}" "$work/corpus/$target" "$seeds" >"$work/$target.log" 2>&1 </dev/null
status=$?

executions=$(sed -n 's/^stat::number_of_executed_units: //p' "$work/$target.log")
coverage=$(sed -n 's/.* cov: \([0-9]*\) ft: \([0-9]*\) corp: \([0-9]*\).*/\1 edges, \2 features, \3 inputs kept/p' \
  "$work/$target.log" | tail -n 1)
summary="$target: ${executions:-no} executions in $seconds s; ${coverage:-no coverage was reported}"
[ "$status" -eq 0 ] || summary+="; FAILED"
echo "$summary" | tee "$work/$target.summary"
[ "$status" -eq 0 ] && exit 0

grep -v '^#[0-9]' "$work/$target.log" | tail -n 60
echo
echo "$target FAILED (exit code $status); all of it: $work/$target.log"
for input in $(comm -13 <(printf '%s\n' "$before") <(ls "$work/findings")); do
  case $input in "$target"-*) ;; *) continue ;; esac
  echo "  the input:     $work/findings/$input"
  echo "  again:         $program $work/findings/$input"
  echo "  make smaller:  $program -minimize_crash=1 -max_total_time=60 $work/findings/$input"
done
echo "Once it is repaired, keep the input as a small file with a telling name in $seeds."
exit "$status"
