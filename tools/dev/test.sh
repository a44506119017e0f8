#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh build [server]|all|server|benchmark|quick: what `make check` and `make test` do. `build` makes all that the tests
# need, `all` runs every test, `server` those of the product and `benchmark` those of the benchmark tools, which `all` runs
# last. `quick` runs a part of the product's on build/dev alone. `build server` leaves out what only `benchmark` needs.
# All kinds of tests run even if one fails; their summaries come last. JOBS are the processors to use, PYTEST_FLAGS the options of pytest. MONKEY_TEST_TREE is the tree, for tests of this script.
set -u
cd "${MONKEY_TEST_TREE:-$(dirname "$0")/../..}" || exit 1
jobs=${JOBS:-$(nproc 2>/dev/null || echo 2)}
# Tests wait longer than they work: three of them for each processor. Tests of a module stay together and share their server.
read -ra pytest_flags <<<"${PYTEST_FLAGS:--q -n $((jobs * 3)) --dist worksteal}"
failed=() black_box=()
# Each process of pytest would compile all tests again.
unset PYTHONDONTWRITEBYTECODE

compile() {
    tools/dev/build.sh dev || return 1
    tools/dev/build.sh release server lib test_handlers || return 1
    ! command -v clang >/dev/null || { tools/dev/need.sh build fuzz && tools/dev/build.sh fuzz fuzzers; }
}

# Each process of pytest would rewrite all modules, at the same time: let them find what this one has written. What it
# cannot import here, they will report.
python() {
    environment venv tests || return 1
    [ "$1" = server ] || environment benchmark-venv tests/benchmark
}

environment() {
    tools/dev/venv.sh "build/$1" "$2/requirements.txt" || return 1
    "build/$1/bin/python" -m pytest -c tests/pytest.ini --collect-only -qq "$2" >/dev/null 2>&1
    return 0
}

# What comes out of the network comes while the compilers work.
build() {
    local venv h2spec status=0
    python "$1" &
    venv=$!
    tools/dev/h2spec.sh build/h2spec &
    h2spec=$!
    compile || status=1
    wait "$venv" || status=1
    wait "$h2spec" || status=1
    exit $status
}

fuzz() {
    [ ! -d build/fuzz ] || JOBS=1 tools/dev/fuzz.sh build/fuzz "${CHECK_FUZZ_SECONDS:-2}"
}

# One thing after the other, for a core that the black box tests leave idle now and then.
beside() {
    local status=0
    if [ "$1" = fuzz ]; then
        shift
        fuzz >build/fuzz.log 2>&1 || status=1
    fi
    ctest --preset dev "$@" >build/ctest.log 2>&1 || status=$((status + 2))
    exit $status
}

# Fuzzing and unit tests beside the black box tests, which wait a lot. They have the last word, when all is done.
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

# After the others, whose clients and servers would disturb what is measured.
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
