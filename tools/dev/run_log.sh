#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_log.sh LOG [LINES]: judges what a command of README.md printed on a fresh machine, for bare.sh. The log has no warning of a
# compiler, of make, of a shell or of pytest. With LINES it is the log of `make run`: it has at most as many lines, and
# the line that names the features lacks none.
# Exit code: 0 all is well, 1 something is not, and a line says what.
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
