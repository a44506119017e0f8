#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh PRESET [-DNAME=VALUE...] [TARGET...]: builds build/PRESET with little output. Configures the folder first if it is new,
# if the presets have changed, or if an option is given. With the target `server` the last line lists the program's features. On a
# terminal ninja shows its progress on one line; otherwise the script prints a line per quarter. Uses ccache if it is installed.
set -u -o pipefail
preset=$1
shift
cd "$(dirname "$0")/../.." || exit 1
folder=build/$preset
options=() targets=() wants_features=
for word; do
    case $word in
        -D*) options+=("$word") ;;
        server) targets+=(server) wants_features=1 ;;
        *) targets+=("$word") ;;
    esac
done
log=$folder/configure.log

# ccache compiles no file twice. The clones of CI share it, although each is in another folder: their debug information may name
# the folder of an earlier clone.
if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER-ccache} CCACHE_BASEDIR=${CCACHE_BASEDIR-$PWD}
    [ -z "${CI-}" ] || export CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR-1}
fi

# CMake's output is shown only on failure.
quietly() {
    "$@" >"$log" 2>&1 && return 0
    cat "$log" >&2
    echo "build: $* failed" >&2
    exit 1
}

show() {
    local line part=0 now
    while IFS= read -r line; do
        if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
            now=$((BASH_REMATCH[1] * 4 / BASH_REMATCH[2]))
            if [ "$now" -gt "$part" ] && [ "${BASH_REMATCH[2]}" -gt 20 ]; then
                part=$now
                echo "build: $((part * 25)) % of ${BASH_REMATCH[2]} steps"
            fi
        elif [[ $line != "-- "* && $line != "ninja: no work to do." && $line != "ninja: Entering directory"* ]]; then
            printf '%s\n' "$line"
        fi
    done
}

mkdir -p "$folder"
if [ ! -e "$folder/build.ninja" ] || [ CMakePresets.json -nt "$folder/build.ninja" ] || [ ${#options[@]} -gt 0 ]; then
    quietly cmake --preset "$preset" "${options[@]}"
    touch "$folder/build.ninja" # CMake may have changed nothing, so mark it as newer than the presets
fi
# If a library was installed or removed, CMake reconfigures here instead of during the build.
quietly cmake --build "$folder" --target build.ninja

command=(cmake --build "$folder")
[ ${#targets[@]} -eq 0 ] || command+=(--target "${targets[@]}")
if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then
    "${command[@]}" || exit
else
    "${command[@]}" 2>&1 | show || exit
fi
[ -z "$wants_features" ] || echo "Monkey $(cat "$folder/features.txt")"
