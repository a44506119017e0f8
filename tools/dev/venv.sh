#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# venv.sh FOLDER REQUIREMENTS: a Python environment with exactly these packages; made anew when the list has changed
# or the Python it was made with is gone.
set -eu
folder=$1 requirements=$2

# Most of what the packages hold is never run: Python compiles the rest when it is.
# The list is copied last, so it is there only when everything else is.
if cmp -s "$requirements" "$folder/requirements.txt" && "$folder/bin/python" -c 'import pip' 2>/dev/null; then
    exit 0
fi
"${PYTHON:-python3}" -m venv --clear "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-compile -r "$requirements"
cp "$requirements" "$folder/requirements.txt"
