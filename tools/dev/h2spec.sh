#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# h2spec.sh FOLDER: puts h2spec, which knows the rules of HTTP/2, into the folder; Go makes it from its source. Where
# there is no Go, or no way to the source, it says so, and the tests that want it are skipped.
set -u
folder=$1
version=v2.2.1+incompatible

[ ! -x "$folder/h2spec" ] || exit 0
go=$(PATH=$PATH:/usr/local/go/bin command -v go) || {
    echo "h2spec.sh: going on without h2spec: there is no go here" >&2
    exit 0
}
mkdir -p "$folder"
root=$(cd "$folder" && pwd)
env GOPATH="$root" GOBIN="$root" GOCACHE="$root/cache" GOFLAGS=-modcacherw \
    "$go" install "github.com/summerwind/h2spec/cmd/h2spec@$version" >"$folder/log" 2>&1 ||
    { echo "h2spec.sh: going on without h2spec:" && tail -n 3 "$folder/log"; } >&2
# Only the program is of use from now on.
rm -rf "$folder/cache" "$folder/pkg"
