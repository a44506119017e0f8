#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tsan.sh [ROUNDS [THREADS]]: builds libmonkey and its stress test with the thread sanitizer in build/tsan and runs it: threads on
# one configuration, logs on, handlers that other threads resume, stops in the middle, calls in the wrong order. The first race
# ends it with an error.
set -eu
cd "$(dirname "$0")/../.."
folder=build/tsan
mkdir -p "$folder"
[ -e "$folder/build.ninja" ] ||
    cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DMK_TESTS=ON -DMK_HARDEN=OFF \
        -DCMAKE_C_FLAGS="-fsanitize=thread -O1 -g -fno-omit-frame-pointer" >"$folder/configure.log"
cmake --build "$folder" --target server lib_test_stress lib_test_ticket lib_test_server lib_test_hostile \
    lib_test_hostile_sockets >"$folder/build.log" || {
    tail -20 "$folder/build.log" >&2
    exit 1
}
export TSAN_OPTIONS="halt_on_error=1 exitcode=66 second_deadlock_stack=1 suppressions=$PWD/tools/dev/tsan.txt"
for test in lib_test_server lib_test_ticket lib_test_hostile lib_test_hostile_sockets "lib_test_stress ${1:-20} ${2:-4}"; do
    # shellcheck disable=SC2086
    "$folder"/tests/lib/$test
done
