#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# contest.sh VERB ...: runs the contest from any folder, with the Python packages it needs. They are installed in
# build/contest-venv (those of `spread` in build/spread-venv), never in the system.
set -eu
project=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
venv=$project/build/contest-venv list=requirements.txt
if [ "${1-}" = spread ]; then
    venv=$project/build/spread-venv list=requirements-spread.txt
fi
if ! "$project/tools/dev/venv.sh" "$venv" "$project/tools/contest/$list" >&2; then
    echo "contest.sh: the Python environment $venv could not be made; on Debian, apt-get install python3-venv is needed" >&2
    exit 1
fi
# Does not change the folder: path arguments are relative to the caller's folder.
PYTHONPATH=$project/tools/contest${PYTHONPATH:+:$PYTHONPATH} exec "$venv/bin/python" -m contest "$@"
