#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tidy.sh [PRESET]: updates all generated files: the format of C files (clang-format 14 or later), the references below docs/, and
# the ABI description. Prints the changed files. PRESET is a build that has the configuration keys; the default is an existing dev
# build, else release.
set -u -o pipefail
cd "${MONKEY_TEST_TREE:-$(dirname "$0")/../..}" || exit 1
preset=${1:-release}
[ $# -gt 0 ] || [ ! -e build/dev/build.ninja ] || preset=dev
failed=()

state() { { git status --porcelain && git ls-files -z --modified | xargs -0 -r git hash-object; } 2>/dev/null; }

before=$(state)

tools/dev/format.sh || failed+=(format)
tools/dev/build.sh "$preset" docs || failed+=(configuration)
"${PYTHON:-python3}" tools/docgen/api.py || failed+=(headers)
"${PYTHON:-python3}" tools/dev/abi.py --update || failed+=(abi)

[ "$before" = "$(state)" ] || git status --short
[ ${#failed[@]} -eq 0 ] || { echo "tidy: failed: ${failed[*]}" >&2; exit 1; }
