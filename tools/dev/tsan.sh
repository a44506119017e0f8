#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tsan.sh [ROUNDS [THREADS]]: builds libmonkey, Duda and their tests with ThreadSanitizer in build/tsan and runs them. First comes
# the stress test of libmonkey: threads that share one configuration, logging, handlers resumed by other threads, stops under
# load, calls in the wrong order. Then Duda services run in a program with an embedded libmonkey, where workers are threads:
# handlers in every kind of wait, cancelled and late handlers, offloaded work and database threads, and messages between workers.
# Any data race is an error.
#
# tsan.sh duda [PYTEST OPTION...]: only the second part. Needs build/venv (make venv), and the libraries of tests/fault in build/dev.
set -eu
cd "$(dirname "$0")/../.."
folder=build/tsan
mkdir -p "$folder"
[ -e "$folder/build.ninja" ] ||
    cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DMK_TESTS=ON -DMK_HARDEN=OFF \
        -DCMAKE_C_FLAGS="-fsanitize=thread -O1 -g -fno-omit-frame-pointer" >"$folder/configure.log"
cmake --build "$folder" --target server embedded lib_test_stress lib_test_request_ref lib_test_server lib_test_misuse lib_test_listeners \
    lib_test_misuse_arguments lib_test_misuse_functions lib_test_misuse_websockets >"$folder/build.log" || {
    tail -20 "$folder/build.log" >&2
    exit 1
}
options="exitcode=66 allocator_may_return_null=1 second_deadlock_stack=1 suppressions=$PWD/tools/dev/tsan.txt"

stress_libmonkey() {
    local test
    for test in lib_test_server lib_test_listeners lib_test_request_ref lib_test_misuse lib_test_misuse_arguments lib_test_misuse_functions \
        lib_test_misuse_websockets "lib_test_stress ${1:-20} ${2:-4}"; do
        # shellcheck disable=SC2086
        TSAN_OPTIONS="halt_on_error=1 $options" "$folder"/tests/lib/$test
    done
}

# The tests look for reports in the program's output. Tests unrelated to threads are left out.
ask_duda() {
    local names=(cancellation topic_subscriptions sockets locks sql jobs kv store postgres redis redis_topics memcached statistics hello http
                 schemas session_cookies responses hostile_calls) modules
    modules=("${names[@]/#/tests/duda/test_}")
    MONKEY_EMBEDDED=1 MONKEY_PROGRAM=$PWD/$folder/monkey MONKEY_SERVICE_FLAGS=-fsanitize=thread TSAN_OPTIONS=$options \
        build/venv/bin/python -m pytest -c tests/pytest.ini --timeout 300 -n 2 --dist loadfile "$@" \
        "${modules[@]/%/.py}"
}

case ${1:-} in
    duda) ask_duda "${@:2}" ;;
    *)
        stress_libmonkey "$@"
        ask_duda
        ;;
esac
