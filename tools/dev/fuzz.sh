#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh BUILD SECONDS [NAME...]: runs the fuzz targets of a build folder, each for so many seconds, or only those
# named. Seeds are read from tests/fuzz/corpus, new inputs kept in BUILD/corpus, what breaks in BUILD/found.
set -u
build=$1 seconds=$2
shift 2
here=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -gt 0 ] || mapfile -t targets < <(find "$build/tests/fuzz" -maxdepth 1 -type f -name 'fuzz_*' -executable -printf '%f\n' | sort)
[ $# -eq 0 ] || targets=("$@")
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: no target in $build/tests/fuzz" >&2; exit 1; }

mkdir -p "$build/found"
broken=()
for name in "${targets[@]}"; do
    grown=$build/corpus/$name seeds=$here/tests/fuzz/corpus/$name words=$here/tests/fuzz/$name.dict
    mkdir -p "$grown"
    options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1
        -artifact_prefix="$build/found/$name-")
    [ ! -f "$words" ] || options+=(-dict="$words")
    [ ! -d "$seeds" ] || grown="$grown $seeds"
    echo "== $name, $seconds s"
    # shellcheck disable=SC2086 # two folders
    "$build/tests/fuzz/$name" "${options[@]}" $grown 2>"$build/found/$name.log" || broken+=("$name")
    grep -E 'ERROR|SUMMARY|Test unit written|stat::(number_of_executed_units|new_units_added|peak_rss_mb)' "$build/found/$name.log"
done
[ ${#broken[@]} -eq 0 ] && { echo "fuzz: ${#targets[@]} targets, nothing found"; exit 0; }
echo "fuzz: broken: ${broken[*]} (logs and inputs in $build/found)"
exit 1
