#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# format.sh: formats every C file with clang-format. Versions 14 to 21 give the same result.
set -u
cd "${MONKEY_TEST_TREE:-$(dirname "$0")/../..}" || exit 1
for tool in clang-format clang-format-{14..21}; do
    version=$("$tool" --version 2>/dev/null | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
    if [ "${version:-0}" -ge 14 ]; then
        find src include plugins duda tools tests examples bindings -name '*.[ch]' -print0 | xargs -0 "$tool" -i
        exit
    fi
done
echo "format: there is no clang-format of version 14 or newer" >&2
exit 1
