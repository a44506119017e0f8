#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# arm.sh [armhf|arm64]...: builds everything for ARM with warnings as errors, and runs the unit tests and replays the fuzz corpus
# under qemu-user. Known failures of the emulation are listed below; any other failure counts. The target's libraries come from
# Debian and are unpacked into build/foreign; `tools/dev/need.sh arm` installs the rest.
# Exit code: 0 success, 1 failure, 77 cannot run on this machine.
set -u
cd "$(dirname "$0")/../.." || exit 1
packages=(libcmocka-dev libnghttp2-dev libssl-dev zlib1g-dev libcrypt-dev nettle-dev libpcre2-dev)

# Tests that fail under qemu-user 7.2, and why.
known='
file_links_inside_root                            the root of the emulator (-L) differs from the root of the system
file_links_in_middle_of_path                      the root of the emulator (-L) differs from the root of the system
file_links_leaving_root                           the root of the emulator (-L) differs from the root of the system
file_cache_recheck_needs_no_descriptor            no openat2: the fallback needs one more descriptor
file_cache_without_descriptors_closes_idle_files  no openat2: the fallback needs one more descriptor
unit/web/test_request_file                        no openat2: the fallback needs one more descriptor, and the test aborts without it
spawn_applies_limits                              qemu-user ignores RLIMIT_AS
spawn_failure_reports_error                       vfork is emulated by fork: parent and child share no memory
subprocess_failed_start_is_reported_later         vfork is emulated by fork: parent and child share no memory
subprocess_signal_reaches_process_group           vfork is emulated by fork: a signal may arrive before the exec of the child
subprocess_signal_waits_for_buffer_space          vfork is emulated by fork: a signal may arrive before the exec of the child
subprocess_killed_child_is_not_reported           vfork is emulated by fork: a signal may arrive before the exec of the child
process_threads_and_memory_are_read               the emulator itself runs a thread
'

say() { echo "arm: $*"; }
skip() { echo "arm: skipped: $*" >&2; exit 77; }

# Prints the names of failed cmocka tests, and of programs that failed without naming a test.
failures() {
    sed -n 's/^[0-9: ]*\[  FAILED  \] \([a-z0-9_]*\)$/\1/p' "$1" | sort -u
    sed -nE 's/.*Test +#[0-9]+: ([^ ]+) .*(\*\*\*Timeout|\*\*\*Exception|\*\*\*Not Run).*/\1/p' "$1" | sort -u
}

run() {
    local name=$1 build=build/$1-tests log=build/$1-tests/arm.log failure bad=0
    tools/dev/foreign.sh "$name" "build/foreign/$name" "${packages[@]}" || return 1
    cmake --no-warn-unused-cli -S . -B "$build" -G Ninja --toolchain "cmake/toolchain-$name.cmake" -DMK_CROSS_LIBRARIES="$PWD/build/foreign/$name/root" \
        -DCMAKE_BUILD_TYPE=Debug -DMK_TESTS=ON -DMK_WERROR=ON >/dev/null && cmake --build "$build" || return 1
    # Tests that fail under parallel load on a slow machine get a second run alone.
    ctest --test-dir "$build" -L 'unit|fuzz' >"$log" 2>&1 && say "$name: $(grep 'tests passed' "$log")" && return 0
    say "$name: $(grep 'tests passed' "$log"); rerunning the failed ones"
    ctest --test-dir "$build" --rerun-failed --output-on-failure >"$log" 2>&1
    while read -r failure; do
        if grep -q "^$failure " <<<"$known"; then
            say "$name: $failure is a known failure: $(sed -n "s|^$failure  *||p" <<<"$known")"
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
