#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mirror.sh: prints the sources of Debian packages that this machine's apt uses, as lines `URI SUITE`: the release, its updates
# and its security updates. Before the first `apt-get update` only the configured sources are known; then the script prints the
# suites of this machine's release.
# Exit code: 0 at least one line was printed, 1 apt has no Debian mirror.
set -u -o pipefail
release=${MIRROR_OS_RELEASE:-/etc/os-release}

# The downloaded Release files name the origin.
downloaded() {
    apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' |
        sort -u | grep .
}

# The URLs that `apt-get update` would download, filtered by Debian's codename: third-party sources have their own suites, or
# none.
configured() {
    local ID='' VERSION_CODENAME=''
    # shellcheck source=/dev/null
    . "$release" && [ "$ID" = debian ] || return 1
    apt-get update --print-uris | sed -n "s|^'\(.*/\)dists/\($VERSION_CODENAME\(-[a-z]*\)\{0,1\}\)/InRelease'.*|\1 \2|p" |
        sort -u | grep .
}

command -v apt-get >/dev/null || exit 1
downloaded 2>/dev/null || configured 2>/dev/null
