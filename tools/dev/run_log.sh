#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_log.sh LOG [LINES]: checks the output of a README.md command on a fresh machine, for bare.sh. The log must not contain
# warnings of a compiler, make, a shell or pytest. With LINES it is the log of `make run`: it must have at most that many lines,
# and its features line must list all features.
# Exit code: 0 success, 1 failure, with a message.
set -u
log=$1 most=${2:-}

fail() { echo "run_log: $*" >&2; exit 1; }

warning=$(grep -m 1 -iE 'warning:|warnings summary|deprecat|arithmetic expression|syntax error|command not found' "$log") &&
    fail "a warning: $warning"
[ -n "$most" ] || exit 0
lines=$(wc -l <"$log")
[ "$lines" -le "$most" ] || fail "make run printed $lines lines, more than $most"
features=$(grep -m 1 -E '^ *Monkey with(out)? ' "$log") || fail "no line names the features"
[[ $features != *"; without "* && $features != *"Monkey without "* ]] || fail "make run built a server that lacks something:$features"
