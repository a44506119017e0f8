#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# h2spec.sh FOLDER: builds h2spec, a conformance tester for HTTP/2, in the folder from its Go source. Without Go or access to the
# source it prints a message, and the tests that need h2spec are skipped.
set -u
folder=$1

[ ! -x "$folder/h2spec" ] || exit 0
go=$(PATH=$PATH:/usr/local/go/bin command -v go) || {
    echo "h2spec.sh: continuing without h2spec: go is not installed" >&2
    exit 0
}
mkdir -p "$folder/source"
root=$(cd "$folder" && pwd)

# h2spec pins no versions of its dependencies, and the latest ones need a newer Go than the 1.19 of Debian 12.
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

# Without optimization and cgo: it runs only for seconds, and compiling with them would take longer.
build() {
    cd "$root/source" && env GOPATH="$root" GOCACHE="$root/cache" GOFLAGS='-modcacherw -mod=mod' CGO_ENABLED=0 \
        "$go" build -buildvcs=false -gcflags='all=-N -l' -ldflags='-s -w' -o "$root/h2spec" github.com/summerwind/h2spec/cmd/h2spec
}
(build) >"$folder/log" 2>&1 || { echo "h2spec.sh: continuing without h2spec:" && tail -n 3 "$folder/log"; } >&2
# From now on only the program is needed.
rm -rf "$folder/cache" "$folder/pkg" "$folder/source"
