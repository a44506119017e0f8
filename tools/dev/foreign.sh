#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# foreign.sh ARCHITECTURE FOLDER PACKAGE...: unpacks Debian packages of another architecture into FOLDER/root. The packages and
# architectures of this machine stay unchanged: apt uses its own lists, cache and state in FOLDER/apt, and verifies the packages
# against the signed lists of this machine's mirror. Dependencies are included, except libc, which comes with the cross compiler's
# packages (/usr/arm-linux-gnueabihf and the like). FOLDER/packages lists the versions. If all packages are present, nothing is
# downloaded.
# Exit code: 0 all packages are present, 1 they cannot be downloaded.
set -u
architecture=$1 folder=$2
shift 2
wanted=("$@")
here=$(cd "$(dirname "$0")" && pwd)

die() { echo "foreign: $*" >&2; exit 1; }

# `wanted` are the requested packages.
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

# Marks packages as installed for the private apt: those that come with the cross compiler, and those that only maintainer scripts
# need.
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

# The output of apt is kept until the next step.
said() { private "$@" >"$folder/apt/said" 2>&1; }
reason() { grep -m 1 '^E:' "$folder/apt/said" || tail -n 1 "$folder/apt/said"; }

fetch() {
    rm -f "$folder"/apt/cache/archives/*.deb
    # Skips a suite with missing or wrongly signed lists; unsigned lists are never used.
    said apt-get update || echo "foreign: skipping some of the lists: $(reason)" >&2
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
