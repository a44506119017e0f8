#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install.sh: installs the programs that the contest compares with Duda in database cases, from the registries of npm, Go and PyPI
# in locked versions, into build/data: node/ with its modules, go/server, python/ with a virtual environment. Existing
# installations are kept; languages missing on this machine are skipped with a message.
set -u
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
into=$(cd "$here/../../.." && pwd)/build/data
PATH=$PATH:/usr/local/go/bin
mkdir -p "$into"

is_new() { # LANGUAGE FILE...: whether a file is newer than the installation of the language
    local mark=$into/$1.installed
    shift
    for file; do
        [ -e "$mark" ] && [ "$mark" -nt "$file" ] || return 0
    done
    return 1
}

install_node() {
    rm -rf "$into/node"
    mkdir "$into/node" && cp "$here"/node/* "$into/node" && (cd "$into/node" && npm ci --silent --no-audit --no-fund)
}

install_go() {
    rm -rf "$into/go"
    mkdir "$into/go" && cp "$here"/go/* "$into/go" &&
        (cd "$into/go" && CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-modcacherw GOMODCACHE=$into/go-modules GOCACHE=$into/go-cache go build -o server .)
}

install_python() {
    rm -rf "$into/python"
    python3 -m venv "$into/python" && cp "$here"/python/*.py "$into/python" &&
        "$into/python/bin/pip" install -q --disable-pip-version-check -r "$here/python/requirements.txt"
}

status=0
install() { # LANGUAGE PROGRAM
    is_new "$1" "$here/$1"/* || return
    if ! command -v "$2" >/dev/null; then
        echo "install.sh: $1 is skipped: there is no $2" >&2
    elif "install_$1" >&2; then
        touch "$into/$1.installed"
    else
        echo "install.sh: $1 could not be installed" >&2
        rm -rf "${into:?}/$1" "$into/$1.installed"
        status=1
    fi
}

install node npm
install go go
install python python3
exit "$status"
