#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# h2spec.sh FOLDER: puts h2spec, which knows the rules of HTTP/2, into the folder; Go makes it from its source. Where
# there is no Go, or no way to the source, it says so, and the tests that want it are skipped.
set -u
folder=$1

[ ! -x "$folder/h2spec" ] || exit 0
go=$(PATH=$PATH:/usr/local/go/bin command -v go) || {
    echo "h2spec.sh: going on without h2spec: there is no go here" >&2
    exit 0
}
mkdir -p "$folder/source"
root=$(cd "$folder" && pwd)

# h2spec names no versions of what it needs, and the latest ones want a later Go than Debian 12 has, which is 1.19.
cat >"$root/source/go.mod" <<'END'
module monkey.example/h2spec

go 1.19

require github.com/summerwind/h2spec v2.2.1+incompatible

require (
	github.com/fatih/color v1.16.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/mattn/go-colorable v0.1.13 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/spf13/cobra v1.8.0 // indirect
	github.com/spf13/pflag v1.0.5 // indirect
	golang.org/x/net v0.17.0 // indirect
	golang.org/x/sys v0.14.0 // indirect
	golang.org/x/text v0.13.0 // indirect
)
END

# Not optimised and without C: it runs for seconds, and compiling it costs more than that.
build() {
    cd "$root/source" && env GOPATH="$root" GOCACHE="$root/cache" GOFLAGS='-modcacherw -mod=mod' CGO_ENABLED=0 \
        "$go" build -buildvcs=false -gcflags='all=-N -l' -ldflags='-s -w' -o "$root/h2spec" github.com/summerwind/h2spec/cmd/h2spec
}
(build) >"$folder/log" 2>&1 || { echo "h2spec.sh: going on without h2spec:" && tail -n 3 "$folder/log"; } >&2
# Only the program is of use from now on.
rm -rf "$folder/cache" "$folder/pkg" "$folder/source"
