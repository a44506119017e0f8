#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mirror.sh: where this machine's apt gets Debian's packages from, as lines `URI SUITE`, such as the release, its updates and
# its security updates. Before the first `apt-get update` apt knows only what its sources say; then the suites of this
# machine's release are printed.
# Exit code: 0 a line was printed, 1 apt knows no mirror of Debian.
set -u -o pipefail
release=${MIRROR_OS_RELEASE:-/etc/os-release}

# From the lists that apt has downloaded: their Release files name the origin.
downloaded() {
    apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' |
        sort -u | grep .
}

# What `apt-get update` would download. The codename is Debian's: sources of third parties name suites of their own, or
# have no suite at all.
configured() {
    local ID='' VERSION_CODENAME=''
    # shellcheck source=/dev/null
    . "$release" && [ "$ID" = debian ] || return 1
    apt-get update --print-uris | sed -n "s|^'\(.*/\)dists/\($VERSION_CODENAME\(-[a-z]*\)\{0,1\}\)/InRelease'.*|\1 \2|p" |
        sort -u | grep .
}

command -v apt-get >/dev/null || exit 1
downloaded 2>/dev/null || configured 2>/dev/null
