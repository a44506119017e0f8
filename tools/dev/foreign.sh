#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# foreign.sh ARCHITECTURE FOLDER PACKAGE...: Debian's packages of another architecture, unpacked into FOLDER/root. What is
# installed here and which architectures this machine knows stays as it is: apt gets lists, cache and state of its own in
# FOLDER/apt, and checks the packages against the signed lists of the mirror that this machine uses. What they depend on
# comes with them, but for libc, which the packages of the cross compiler bring (/usr/arm-linux-gnueabihf and the like).
# FOLDER/packages says which versions they are. Nothing is fetched when all are there.
# Exit code: 0 all are there, 1 they cannot be had.
set -u
architecture=$1 folder=$2
shift 2
wanted=("$@")
here=$(cd "$(dirname "$0")" && pwd)

die() { echo "foreign: $*" >&2; exit 1; }

# `wanted` are the packages that are asked for.
give_up() {
    die "$1. Unpack ${wanted[*]} for $architecture into $folder/root (dpkg-deb -x) and write a line \"PACKAGE VERSION\" for" \
        "each into $folder/packages; then nothing is fetched"
}

are_there() {
    local package
    for package; do
        grep -qs "^$package " "$folder/packages" || return 1
    done
}

write_sources() {
    local keyring=/usr/share/keyrings/debian-archive-keyring.gpg uri suite options="arch=$architecture"
    [ ! -e "$keyring" ] || options+=" signed-by=$keyring"
    "$here/mirror.sh" | while read -r uri suite; do
        echo "deb [$options] $uri $suite main"
    done >"$folder/apt/sources.list"
    [ -s "$folder/apt/sources.list" ] || give_up "no mirror of Debian is known to apt here"
}

# To the private apt they are there: what the packages of the cross compiler bring, and what only scripts of
# packages need.
write_status() {
    local package
    for package in libc6 libc6-dev libc-dev libgcc-s1 linux-libc-dev debconf dpkg; do
        printf '%s\n' "Package: $package" 'Status: install ok installed' 'Version: 99:1' "Architecture: $architecture" \
            'Maintainer: nobody' 'Description: as if' ''
    done >"$folder/apt/status"
}

private() {
    "$1" -q "${@:2}" -o "APT::Architecture=$architecture" -o "APT::Architectures::=$architecture" \
        -o "Dir::Etc::sourcelist=$folder/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
        -o "Dir::State=$folder/apt/state" -o "Dir::State::status=$folder/apt/status" -o "Dir::Cache=$folder/apt/cache" \
        -o APT::Sandbox::User= -o Acquire::Languages=none -o Acquire::Retries=2 -o Acquire::http::Timeout=20
}

# What apt says is kept until its next step.
said() { private "$@" >"$folder/apt/said" 2>&1; }
reason() { grep -m 1 '^E:' "$folder/apt/said" || tail -n 1 "$folder/apt/said"; }

fetch() {
    rm -f "$folder"/apt/cache/archives/*.deb
    # A suite whose lists cannot be had, or are not what was signed, is left out; nothing unsigned takes its place.
    said apt-get update || echo "foreign: going on without a part of the lists: $(reason)" >&2
    said apt-get install -y --download-only --no-install-recommends "$@" ||
        give_up "apt-get cannot fetch $* for $architecture: $(reason)"
}

unpack() {
    local file
    for file in "$folder"/apt/cache/archives/*.deb; do
        dpkg-deb -x "$file" "$folder/root" || die "$file cannot be unpacked"
        dpkg-deb -f "$file" Package Version | sed 's/.*: //' | paste -sd ' ' >>"$folder/packages"
        rm "$file"
    done
}

are_there "$@" && exit 0
mkdir -p "$folder"/root "$folder"/apt/state/lists/partial "$folder"/apt/cache/archives/partial || die "$folder cannot be written"
folder=$(cd "$folder" && pwd)
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || give_up "apt-get and dpkg-deb are not there"
write_status
write_sources
fetch "$@"
unpack
are_there "$@" || give_up "apt-get fetched something else than $*"
