#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the commands of README.md and CONTRIBUTING.md on a fresh machine: a chroot with a minimal Debian system, `make`, and a
# clone of the committed tree. It finds packages that the Makefile fails to install.
#
#     tools/dev/bare.sh [OPTION...] [STEP...]
#
# Steps: `run` (make run, until the server responds to HTTP and HTTPS), `libc` (the same without any library) and `check` (make
# check); the default is `run` and `check`. The script needs root, debootstrap and git.
#
#     --mirror URL     the package mirror (or BARE_MIRROR; default: the mirror of this machine's apt)
#     --suite NAME     Debian's release (or BARE_SUITE; default: bookworm)
#     --folder FOLDER  keep the chroot in this folder, and reuse it; the default is a temporary folder
#     --pass NAME      pass on this environment variable, such as http_proxy or PIP_INDEX_URL; may be repeated
#     --copy PATH      copy this file or folder to the same path in the chroot, such as /etc/pip.conf; may be repeated. Do not put
#                      certificates for PIP_CERT below /etc/ssl/certs, which the package ca-certificates overwrites
#
# For one command with another flag: MAKE_FLAGS='PYTEST_FLAGS="-q -k need"' tools/dev/bare.sh --folder F check
set -u
project=$(cd "$(dirname "$0")/../.." && pwd)
mirror=${BARE_MIRROR:-}
suite=${BARE_SUITE:-bookworm}
folder='' is_kept='' steps=() passed=() copied=()

say() { printf 'bare: %s\n' "$*" >&2; }

give_up() {
    say "$*"
    exit 1
}

usage() {
    sed -n 's/^# \{0,1\}//p' "$0" | sed -n '2,/^For one command/p' >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
        --mirror | --suite | --folder | --pass | --copy) [ $# -gt 1 ] || usage ;;
    esac
    case $1 in
        --mirror) mirror=$2 && shift ;;
        --suite) suite=$2 && shift ;;
        --folder) folder=$2 is_kept=1 && shift ;;
        --pass) passed+=("$2") && shift ;;
        --copy) copied+=("$2") && shift ;;
        -h | --help) usage ;;
        run | libc | check) steps+=("$1") ;;
        *) usage ;;
    esac
    shift
done
[ ${#steps[@]} -gt 0 ] || steps=(run check)
[ "$(id -u)" = 0 ] || give_up "only root can make a chroot"
for program in debootstrap git unshare; do
    command -v "$program" >/dev/null || give_up "there is no $program here: apt-get install debootstrap git util-linux"
done

# The first mirror is the release's main archive; the security archive has only some of the packages.
[ -n "$mirror" ] || mirror=$("$project/tools/dev/mirror.sh" | sed -n 's/ [a-z]*$//p' | head -n 1)
[ -n "$mirror" ] || give_up "apt of this machine knows no mirror of Debian: name one with --mirror"

# Private namespaces: mounts and processes end with the script.
if [ -z "${BARE_IS_INSIDE:-}" ]; then
    [ -n "$folder" ] || folder=$(mktemp -d)
    mkdir -p "$folder"
    folder=$(cd "$folder" && pwd)
    words=(--mirror "$mirror" --suite "$suite" --folder "$folder")
    for name in "${passed[@]}"; do words+=(--pass "$name"); done
    for path in "${copied[@]}"; do words+=(--copy "$path"); done
    BARE_IS_INSIDE=1 unshare --mount --propagation private --pid --fork --kill-child "$0" "${words[@]}" "${steps[@]}"
    status=$?
    [ -n "$is_kept" ] || rm -rf --one-file-system "$folder"
    exit $status
fi

make_system() {
    [ ! -e "$folder/etc/debian_version" ] || return 0
    say "making $suite in $folder"
    debootstrap --variant=minbase "$suite" "$folder" "$mirror" >"$folder.log" 2>&1 || give_up "debootstrap failed: see $folder.log"
    rm -f "$folder.log"
}

mount_system() {
    mount -t proc proc "$folder/proc" || give_up "could not mount /proc"
    mount --rbind /sys "$folder/sys"
    mount --rbind /dev "$folder/dev"
    cp -L /etc/resolv.conf /etc/hosts "$folder/etc/"
    for path in "${copied[@]}"; do
        mkdir -p "$folder$(dirname "$path")" && cp -aL "$path" "$folder$(dirname "$path")/" || give_up "could not copy $path"
    done
}

# Clones again each time and moves the previous build folder into the clone, as after a git pull.
clone() {
    [ ! -d "$folder/monkey/build" ] || mv "$folder/monkey/build" "$folder/build"
    rm -rf "$folder/monkey"
    git -c safe.directory='*' clone -q --no-local "$project" "$folder/monkey" || give_up "could not clone $project"
    [ ! -d "$folder/build" ] || mv "$folder/build" "$folder/monkey/build"
}

in_system() {
    local words=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "TERM=${TERM:-dumb}") name
    for name in "${passed[@]}"; do
        [ -z "${!name+x}" ] || words+=("$name=${!name}")
    done
    env -i "${words[@]}" chroot "$folder" sh -c "cd /monkey && $1"
}

# Waits until the command prints a URL of that scheme, sends a request, and stops the command.
first_answer() {
    local scheme=$1 command=$2 log=$folder/tmp/run.log pid url='' tick
    : >"$log"
    in_system "exec $command" >"$log" 2>&1 &
    pid=$!
    for ((tick = 0; tick < 9000 && ! ${#url}; tick++)); do
        sleep 0.2
        kill -0 "$pid" 2>/dev/null || tick=9000
        url=$(sed -n "s|^ *\($scheme://[^ ]*\)\$|\1|p" "$log" | head -n 1)
    done
    sed 's/^/    /' "$log"
    [ -n "$url" ] || give_up "$command: no address of $scheme came"
    ask "$url" || give_up "$command: no answer from $url"
    say "$command: $url answers"
    kill "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
}

ask() {
    local host=${1#*://}
    host=${host%%/*}
    if [[ $1 == https:* ]]; then
        openssl s_client -connect "$host" </dev/null 2>/dev/null | grep -q 'BEGIN CERTIFICATE'
    else
        exec 3<>"/dev/tcp/${host%:*}/${host##*:}" && printf 'GET / HTTP/1.0\r\n\r\n' >&3 && head -n 1 <&3 | grep -q '200 OK'
    fi
}

# The kernel chooses the port: the chroot shares the network of this machine, where 2001 may be in use.
step_run() {
    first_answer http 'make run SITE="-p 127.0.0.1:0 site"'
    "$project/tools/dev/run_log.sh" "$folder/tmp/run.log" 40 || give_up "make run is not as README.md promises"
    ! command -v openssl >/dev/null || first_answer https 'build/release/monkey -p 127.0.0.1:0 site --https'
}

step_libc() {
    first_answer http 'make run PRESET=libc SITE="-p 127.0.0.1:0 site"'
    "$project/tools/dev/run_log.sh" "$folder/tmp/run.log" || give_up "make run PRESET=libc warned"
}

step_check() {
    in_system "make check ${MAKE_FLAGS:-}" 2>&1 | tee "$folder/tmp/check.log"
    [ "${PIPESTATUS[0]}" = 0 ] || give_up "make check failed"
    "$project/tools/dev/run_log.sh" "$folder/tmp/check.log" || give_up "make check warned"
}

make_system
mount_system
clone
in_system 'command -v make >/dev/null || { apt-get -qq update && apt-get -qq -y install --no-install-recommends make; } >/dev/null 2>&1' ||
    give_up "could not install make: is the mirror reachable?"
for step in "${steps[@]}"; do
    say "step $step"
    began=$SECONDS
    "step_$step"
    say "step $step passed in $((SECONDS - began)) s"
done
