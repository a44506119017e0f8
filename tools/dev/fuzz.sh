#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh BUILD SECONDS [NAME...]: runs all fuzz targets of a build folder, or those named, for SECONDS each; JOBS of them at a
# time. Seeds come from tests/fuzz/corpus and BUILD/tests/fuzz/seeds; new inputs go to BUILD/corpus, crashes to BUILD/found.
set -u
build=$1 seconds=$2
shift 2
here=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -gt 0 ] || mapfile -t targets < <(find "$build/tests/fuzz" -maxdepth 1 -type f -name 'fuzz_*' -executable -printf '%f\n' | sort)
[ $# -eq 0 ] || targets=("$@")
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: no target in $build/tests/fuzz" >&2; exit 1; }

mkdir -p "$build/found"

# Runs one target: the full output goes to its log, a summary to standard output as one block.
run() {
    local name=$1 grown=$build/corpus/$1 seeds=$here/tests/fuzz/corpus/$1 made=$build/tests/fuzz/seeds/$1
    local words=$here/tests/fuzz/$1.dict status=0
    mkdir -p "$grown"
    # libFuzzer stops when more than this many whole seconds have passed, and never for 0.
    local options=(-max_total_time="$((seconds > 1 ? seconds - 1 : 1))" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1
        -artifact_prefix="$build/found/$name-")
    [ ! -f "$words" ] || options+=(-dict="$words")
    [ ! -d "$seeds" ] || grown="$grown $seeds"
    [ ! -d "$made" ] || grown="$grown $made"
    # shellcheck disable=SC2086 # several folders
    "$build/tests/fuzz/$name" "${options[@]}" $grown 2>"$build/found/$name.log" || status=1
    printf '== %s, %s s\n%s\n' "$name" "$seconds" \
        "$(grep -E 'ERROR|SUMMARY|Test unit written|stat::(number_of_executed_units|new_units_added|peak_rss_mb)' "$build/found/$name.log")"
    [ $status = 0 ] || touch "$build/found/$name.broken"
}

# Runs JOBS targets at a time; each needs one core.
rm -f "$build"/found/*.broken
for name in "${targets[@]}"; do
    while [ "$(jobs -pr | wc -l)" -ge "${JOBS:-1}" ]; do wait -n; done
    run "$name" &
done
wait
broken=()
for name in "${targets[@]}"; do
    [ ! -e "$build/found/$name.broken" ] || broken+=("$name")
done
[ ${#broken[@]} -eq 0 ] && { echo "fuzz: ${#targets[@]} targets, nothing found"; exit 0; }
echo "fuzz: broken: ${broken[*]} (logs and inputs in $build/found)"
exit 1
