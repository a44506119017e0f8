#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh build [server]|all|server|benchmark|quick: implements `make check` and `make test`. `build` builds everything that the
# tests need; `build server` omits what only `benchmark` needs. `all` runs every test, `server` those of the server, and
# `benchmark` those of the benchmark tools, which `all` runs last. `quick` runs some of the server's tests on build/dev only. All
# kinds of tests run even if one fails; their summaries come last. JOBS is the number of CPUs to use, PYTEST_FLAGS are options of
# pytest. MONKEY_TEST_TREE is the tree, for tests of this script.
set -u
cd "${MONKEY_TEST_TREE:-$(dirname "$0")/../..}" || exit 1
jobs=${JOBS:-$(nproc 2>/dev/null || echo 2)}
# Tests mostly wait: three processes per CPU. Tests of a module run in one process and share a server.
read -ra pytest_flags <<<"${PYTEST_FLAGS:--q -n $((jobs * 3)) --dist worksteal}"
failed=() black_box=()
# Without .pyc files, every pytest process would compile all tests again.
unset PYTHONDONTWRITEBYTECODE

compile() {
    tools/dev/build.sh dev || return 1
    tools/dev/build.sh release -DMK_WERROR=ON server lib test_handlers || return 1
    ! command -v clang >/dev/null || { tools/dev/need.sh build fuzz && tools/dev/build.sh fuzz fuzzers; }
}

# Compiles all test modules once: otherwise all pytest processes would write the same .pyc files at the same time. Import errors
# are reported later by the tests.
python() {
    environment venv tests || return 1
    [ "$1" = server ] || environment benchmark-venv tests/benchmark
}

environment() {
    tools/dev/venv.sh "build/$1" "$2/requirements.txt" || return 1
    "build/$1/bin/python" -m pytest -c tests/pytest.ini --collect-only -qq "$2" >/dev/null 2>&1
    return 0
}

# Downloads run while the compilers work.
build() {
    local venv h2spec pebble status=0
    python "$1" &
    venv=$!
    tools/dev/h2spec.sh build/h2spec &
    h2spec=$!
    tools/dev/pebble.sh build/pebble &
    pebble=$!
    compile || status=1
    wait "$venv" || status=1
    wait "$h2spec" || status=1
    wait "$pebble" || status=1
    exit $status
}

fuzz() {
    [ ! -d build/fuzz ] || JOBS=1 tools/dev/fuzz.sh build/fuzz "${CHECK_FUZZ_SECONDS:-2}"
}

# Runs fuzzing and unit tests one after the other, on the CPU time that the black-box tests leave idle.
beside() {
    local status=0
    if [ "$1" = fuzz ]; then
        shift
        fuzz >build/fuzz.log 2>&1 || status=1
    fi
    ctest --preset dev "$@" >build/ctest.log 2>&1 || status=$((status + 2))
    exit $status
}

# Runs fuzzing and unit tests in parallel with the black-box tests, which mostly wait. Their summaries come last.
test_all() {
    local pid status=0
    rm -f build/fuzz.log
    beside "$@" &
    pid=$!
    build/venv/bin/python -m pytest -c tests/pytest.ini "${pytest_flags[@]}" "${black_box[@]}" tests || failed+=(pytest)
    wait "$pid" || status=$?
    [ $((status & 1)) = 0 ] || failed+=(fuzz)
    [ $((status & 2)) = 0 ] || failed+=(ctest)
    [ ! -e build/fuzz.log ] || cat build/fuzz.log
    grep -v ' Passed \|^ *Start ' build/ctest.log
}

# Runs after the other tests, which would disturb the measurements.
test_benchmark() {
    build/benchmark-venv/bin/python -m pytest -c tests/pytest.ini "${pytest_flags[@]}" tests/benchmark || failed+=(benchmark)
    ctest --preset dev -j "$jobs" -L benchmark >build/ctest-benchmark.log 2>&1 || failed+=(ctest-benchmark)
    grep -v ' Passed \|^ *Start ' build/ctest-benchmark.log
}

case ${1-} in
    build) build "${2-all}" ;;
    all)
        test_all fuzz -j 1 -LE benchmark
        test_benchmark
        ;;
    server) test_all fuzz -j 1 -LE benchmark ;;
    benchmark) test_benchmark ;;
    quick)
        black_box=(--quick)
        test_all -j "$jobs" -L 'unit|house'
        ;;
    *)
        echo "usage: test.sh build [server]|all|server|benchmark|quick" >&2
        exit 2
        ;;
esac
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}" >&2; exit 1; }
