#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh build|all|quick: what `make check` and `make test` do. `build` makes all that the tests need, `all` runs
# every test, and `quick` a part of them on build/dev alone. All kinds of tests run even if one fails; their summaries come
# last. MONKEY_TEST_TREE is the tree, for tests of this script.
set -u
cd "${MONKEY_TEST_TREE:-$(dirname "$0")/../..}" || exit 1
jobs=${JOBS:-2}
read -ra pytest_flags <<<"${PYTEST_FLAGS:--q}"
failed=()
# Each process of pytest would compile all tests again.
unset PYTHONDONTWRITEBYTECODE

compile() {
    tools/dev/build.sh dev || return 1
    tools/dev/build.sh release server lib test_handlers || return 1
    ! command -v clang >/dev/null || { tools/dev/need.sh build fuzz && tools/dev/build.sh fuzz fuzzers; }
}

# What comes out of the network comes while the compilers work.
build() {
    local venv h2spec status=0
    tools/dev/venv.sh build/venv tests/requirements.txt &
    venv=$!
    tools/dev/h2spec.sh build/h2spec &
    h2spec=$!
    compile || status=1
    wait "$venv" || status=1
    wait "$h2spec" || status=1
    exit $status
}

fuzz() {
    if [ -d build/fuzz ]; then
        tools/dev/fuzz.sh build/fuzz "${CHECK_FUZZ_SECONDS:-2}" || failed+=(fuzz)
    fi
}

# The unit tests beside the black box tests, which wait a lot. CTest has the last word, when all is done.
test_all() {
    local log=build/ctest.log pid
    ctest --preset dev "$@" >"$log" 2>&1 &
    pid=$!
    build/venv/bin/python -m pytest -c tests/pytest.ini "${pytest_flags[@]}" "${black_box[@]}" tests || failed+=(pytest)
    wait "$pid" || failed+=(ctest)
    grep -v ' Passed \|^ *Start ' "$log"
}

case ${1-} in
    build) build ;;
    all)
        fuzz
        black_box=()
        test_all -j 1
        ;;
    quick)
        black_box=(--quick)
        test_all -j "$jobs" -L 'unit|house'
        ;;
    *)
        echo "usage: test.sh build|all|quick" >&2
        exit 2
        ;;
esac
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}" >&2; exit 1; }
