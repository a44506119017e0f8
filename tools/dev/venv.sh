#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# venv.sh FOLDER REQUIREMENTS: creates a Python environment with exactly these packages; recreates it if the requirements have
# changed or its Python is gone.
set -eu
folder=$1 requirements=$2

# --no-compile: most modules of the packages are never imported; Python compiles the others on first use. The requirements are
# copied last, so their presence means that the environment is complete.
if cmp -s "$requirements" "$folder/requirements.txt" && "$folder/bin/python" -c 'import pip' 2>/dev/null; then
    exit 0
fi
"${PYTHON:-python3}" -m venv --clear "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-compile -r "$requirements"
cp "$requirements" "$folder/requirements.txt"
