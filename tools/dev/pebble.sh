#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pebble.sh FOLDER: builds Pebble, an ACME authority for tests, and its resolver in the folder from the Go module proxy.
# tests/pebble.py prefers them to those of Debian, which lack ARI, profiles and IP identifiers. Without Go or access to the proxy
# it prints a message, and the tests that need the current Pebble are skipped.
set -u
folder=$1
programs=(pebble pebble-challtestsrv)
version=v2.10.1

[ ! -x "$folder/${programs[0]}" ] || [ ! -x "$folder/${programs[1]}" ] || exit 0
go=$(PATH=$PATH:/usr/local/go/bin command -v go) || {
    echo "pebble.sh: continuing without Pebble $version: go is not installed" >&2
    exit 0
}
mkdir -p "$folder"
root=$(cd "$folder" && pwd)

# Without optimization and cgo: compiling with them would take longer. A Go that is too old must not download another one.
build() {
    cd / && env GOPATH="$root" GOBIN="$root" GOCACHE="$root/cache" GOFLAGS='-modcacherw -mod=mod' GOTOOLCHAIN=local CGO_ENABLED=0 \
        "$go" install -gcflags='all=-N -l' -ldflags='-s -w' "${programs[@]/%/@$version}"
}
programs=("${programs[@]/#/github.com/letsencrypt/pebble/v2/cmd/}")
(build) >"$folder/log" 2>&1 || { echo "pebble.sh: continuing without Pebble $version:" && tail -n 3 "$folder/log"; } >&2
# From now on only the programs are needed.
rm -rf "$folder/cache" "$folder/pkg"
