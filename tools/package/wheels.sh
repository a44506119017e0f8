#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# wheels.sh [--build FOLDER] [--output FOLDER] [glibc|musl|sdist]...: builds the packages of the Python binding.
#
#   glibc   a manylinux wheel with libmonkey.so.1 of build/release, the plugins that work in a program, and the libraries that they
#           use. auditwheel gives it the tag of the oldest glibc that its symbols allow: 2.36 on Debian 12.
#   musl    a musllinux wheel with a libmonkey.so.1 that musl-gcc builds, and all its plugins inside. It has neither TLS nor HTTP/2
#           nor compression nor regular expressions, because Debian has no OpenSSL, nghttp2, zlib and PCRE2 for musl. In Alpine, run
#           `wheels.sh glibc` instead: auditwheel then makes a complete musllinux wheel from the system's libraries.
#   sdist   the source archive, which includes the public headers
#
# Default: glibc sdist. The wheels serve CPython 3.11 and all later versions (stable ABI), if this Python is 3.11 or later. Needs pip
# and the headers of Python; musl needs musl-gcc (Debian: musl-tools). PYTHON names the interpreter, WHEEL_VENV an environment with the
# packages of tools/package/requirements.txt (default: build/wheel-venv, which is created). --build names a build of the release.
set -eu
cd "$(dirname "$0")/../.."
build=build/release output=build/wheels python=${PYTHON:-python3} venv=${WHEEL_VENV:-build/wheel-venv} kinds=()
plugins="auth compress dirlisting headers limits logger metrics readers rewrite security tls" # readers: for dirlisting
while [ $# -gt 0 ]; do
    case $1 in
        --build) build=$2 && shift ;;
        --output) output=$2 && shift ;;
        glibc | musl | sdist) kinds+=("$1") ;;
        *) echo "wheels: expected glibc, musl or sdist, not $1" >&2 && exit 1 ;;
    esac
    shift
done
[ ${#kinds[@]} -gt 0 ] || kinds=(glibc sdist)
mkdir -p "$output"
output=$(realpath "$output")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# bundle LIBRARY PLUGIN...: prepares the files that become part of the wheel.
bundle() {
    rm -rf "$work/bundle" && mkdir -p "$work/bundle/monkey"
    cp -L "$1" "$work/bundle/libmonkey.so.1"
    shift
    for plugin; do
        cp "$plugin" "$work/bundle/monkey/"
    done
    find "$work/bundle" -type f -exec strip --strip-unneeded {} +
}

# wheel FOLDER: builds the wheel with the bundle.
wheel() {
    mkdir -p "$1"
    LIBMONKEY_BUNDLE=$work/bundle LDFLAGS=-s "$venv/bin/python" -c \
        'import sys; sys.path.insert(0, "bindings/python"); import backend; print(backend.build_wheel(sys.argv[1]))' "$1"
}

glibc() {
    local files=() plugin
    for plugin in $plugins; do
        [ ! -e "$build/plugins/monkey-$plugin.so" ] || files+=("$build/plugins/monkey-$plugin.so")
    done
    bundle "$build/libmonkey.so.1" "${files[@]}"
    wheel "$work/wheel"
    # Adds the libraries that the bundle needs.
    PATH=$venv/bin:$PATH "$venv/bin/auditwheel" repair --wheel-dir "$output" "$work"/wheel/*.whl >"$work/log" 2>&1 ||
        { cat "$work/log" >&2 && exit 1; }
}

# Debian's musl-gcc does not find the headers of the kernel.
musl() {
    local multiarch flags
    multiarch=$(gcc -print-multiarch)
    mkdir "$work/kernel"
    for folder in linux asm asm-generic; do
        for place in "/usr/include/$multiarch" /usr/include; do
            [ ! -d "$place/$folder" ] || ln -sfn "$place/$folder" "$work/kernel/$folder"
        done
    done
    flags="-isystem $work/kernel"
    cmake -S . -B "$work/musl" -G Ninja -DCMAKE_C_COMPILER=musl-gcc "-DCMAKE_C_FLAGS=$flags" -DCMAKE_BUILD_TYPE=Release \
        -DMK_LIBRARIES=OFF -DMK_PLUGINS_STATIC=all >"$work/log" 2>&1 &&
        cmake --build "$work/musl" --target libmonkey >"$work/log" 2>&1 || { cat "$work/log" >&2 && exit 1; }
    bundle "$work/musl/libmonkey.so.1"
    # The bundle needs only libc.so, which is musl itself, so auditwheel would have nothing to add; nor does it accept musllinux here.
    CC=musl-gcc CFLAGS=$flags LIBMONKEY_PLATFORM="musllinux_1_2_$(uname -m)" wheel "$output"
}

sdist() {
    (cd bindings/python && "$venv/bin/python" -c 'import sys, backend; print(backend.build_sdist(sys.argv[1]))' "$output")
}

[ -e "$build/libmonkey.so.1" ] || { [ "$build" = build/release ] && tools/dev/build.sh release server lib; }
[ -n "${WHEEL_VENV:-}" ] || PYTHON=$python tools/dev/venv.sh "$venv" tools/package/requirements.txt
venv=$(realpath -s "$venv")
for kind in "${kinds[@]}"; do
    $kind >/dev/null
done
ls "$output"
