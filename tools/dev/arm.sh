#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# arm.sh [armhf|arm64]...: builds everything for ARM with warnings as errors, and runs the unit tests and the replay of the
# fuzz corpus under qemu-user. What the emulation cannot do is known (below); any other failure is one. Libraries of the
# other processor come from Debian into build/foreign; `tools/dev/need.sh arm` installs the rest.
# Exit code: 0 all is well, 1 something is not, 77 it cannot be tried here.
set -u
cd "$(dirname "$0")/../.." || exit 1
packages=(libcmocka-dev libnghttp2-dev libssl-dev zlib1g-dev libcrypt-dev nettle-dev libpcre2-dev)

# Tests that fail under qemu-user 7.2, and why.
known='
links_inside_of_the_root                the root of the emulation (-L) is not the one of the system
links_in_the_middle_of_a_path           the root of the emulation (-L) is not the one of the system
links_out_of_the_root                   the root of the emulation (-L) is not the one of the system
looking_again_costs_no_descriptor       no openat2: our own walk takes a descriptor more
without_descriptors_idle_ones_are_used  no openat2: our own walk takes a descriptor more
unit/web/test_request_file              no openat2: our own walk takes a descriptor more, and the test ends where there is none
limits_hold                             RLIMIT_AS is not passed on
what_cannot_be_started_says_why         vfork is a fork: parent and child do not share their memory
a_failed_start_is_reported_later        vfork is a fork: parent and child do not share their memory
a_signal_reaches_the_whole_group        vfork is a fork: a signal may come before the child is what it shall be
signals_wait_for_room                   vfork is a fork: a signal may come before the child is what it shall be
a_dropped_child_dies_silently           vfork is a fork: a signal may come before the child is what it shall be
threads_and_memory_are_read             the emulator has a thread of its own
'

say() { echo "arm: $*"; }
skip() { echo "arm: cannot be tried: $*" >&2; exit 77; }

# The names of cmocka tests that failed, and of programs that did not end as they should without naming one.
failures() {
    sed -n 's/^[0-9: ]*\[  FAILED  \] \([a-z0-9_]*\)$/\1/p' "$1" | sort -u
    sed -nE 's/.*Test +#[0-9]+: ([^ ]+) .*(\*\*\*Timeout|\*\*\*Exception|\*\*\*Not Run).*/\1/p' "$1" | sort -u
}

run() {
    local name=$1 build=build/$1-tests log=build/$1-tests/arm.log failure bad=0
    tools/dev/foreign.sh "$name" "build/foreign/$name" "${packages[@]}" || return 1
    cmake --no-warn-unused-cli -S . -B "$build" -G Ninja --toolchain "cmake/toolchain-$name.cmake" -DMK_CROSS_LIBRARIES="$PWD/build/foreign/$name/root" \
        -DCMAKE_BUILD_TYPE=Debug -DMK_TESTS=ON -DMK_WERROR=ON >/dev/null && cmake --build "$build" || return 1
    # What fails beside others, on a machine that is slow enough without them, is judged by a second run alone.
    ctest --test-dir "$build" -L 'unit|fuzz' >"$log" 2>&1 && say "$name: $(grep 'tests passed' "$log")" && return 0
    say "$name: $(grep 'tests passed' "$log"); once more, those that failed"
    ctest --test-dir "$build" --rerun-failed --output-on-failure >"$log" 2>&1
    while read -r failure; do
        if grep -q "^$failure " <<<"$known"; then
            say "$name: $failure fails, as is known: $(sed -n "s|^$failure  *||p" <<<"$known")"
        else
            say "$name: $failure FAILS (see $log)"
            bad=1
        fi
    done < <(failures "$log")
    grep -q 'tests passed' "$log" || bad=1
    return $bad
}

for program in cmake ninja qemu-arm qemu-aarch64 arm-linux-gnueabihf-gcc aarch64-linux-gnu-gcc; do
    command -v "$program" >/dev/null || skip "there is no $program; tools/dev/need.sh arm installs it"
done
status=0
[ $# -gt 0 ] || set -- armhf arm64
for each; do
    run "$each" || status=1
done
exit $status
