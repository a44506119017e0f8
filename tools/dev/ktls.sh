#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ktls.sh BUILD: tests kernel TLS in a virtual machine without KVM, because kernels of build machines often lack the module `tls`.
# BUILD is a folder with the program, without sanitizers. ktls-guest.sh runs inside. An emulation is no use for measurements, so
# there are none.
#
# The kernel is Debian's. MONKEY_KERNEL names a folder with boot/ and lib/modules/ (an unpacked package); the default is this
# machine's kernel if it has the module, or one that apt-get can download. MONKEY_ACCEL=kvm uses KVM.
# Exit code: 0 success, 1 failure, 77 cannot run on this machine.
set -u
build=$(cd "$1" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT

skip() { echo "ktls: skipped: $*" >&2; exit 77; }
die() { echo "ktls: $*" >&2; exit 1; }

has_module() { compgen -G "$1/boot/vmlinuz-*" >/dev/null && compgen -G "$1/lib/modules/*/kernel/net/tls/tls.ko" >/dev/null; }

# Sets `kernel` to a folder.
find_kernel() {
    local package
    kernel=${MONKEY_KERNEL:-/}
    has_module "$kernel" && return
    [ -z "${MONKEY_KERNEL:-}" ] || die "$kernel has no boot/vmlinuz-* or no tls.ko"
    package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -n 's/.*Depends: //p')
    kernel=$top/kernel
    [ -n "$package" ] && mkdir "$top/deb" && (cd "$top/deb" && apt-get -qq download "$package" 2>/dev/null) &&
        dpkg-deb -x "$top"/deb/*.deb "$kernel" && has_module "$kernel" || skip "there is no kernel with a module tls"
}

# Copies a program or shared object to its path in the guest, with the libraries it needs.
add() {
    local file
    install -D "$1" "$root$2"
    ldd "$1" 2>/dev/null | grep -o '/[^ ]*' | while read -r file; do
        [ -e "$root$file" ] || install -D "$file" "$root$file"
    done
}

make_root() {
    local modules name
    modules=$(cd "$(dirname "$kernel"/lib/modules/*/kernel/net/tls/tls.ko)/../../.." && pwd)
    mkdir -p "$root"/{bin,sbin,dev,proc,sys,tmp,etc,www/cgi-bin,log} "$root/lib/modules/$(basename "$modules")"
    cp -r "$modules"/kernel/{crypto,arch/x86/crypto,lib} "$root/lib/modules/$(basename "$modules")"
    cp "$modules/kernel/net/tls/tls.ko" "$root/"
    add "$(command -v busybox)" /bin/busybox
    add "$build/monkey" /monkey/monkey
    for name in tls cgi; do
        add "$(find "$build" -name "monkey-$name.so" | head -n 1)" "/monkey/plugins/monkey-$name.so"
    done
    touch "$root/monkey/plugins/build-tree"
    for name in curl openssl strace; do
        command -v "$name" >/dev/null && add "$(command -v "$name")" "/bin/$name"
    done
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -addext \
        subjectAltName=DNS:localhost -keyout "$root/monkey/key.pem" -out "$root/monkey/cert.pem" 2>/dev/null
    echo '127.0.0.1 localhost' >"$root/etc/hosts"
    echo 'root:x:0:0::/:/bin/sh' >"$root/etc/passwd"
    install "$here/ktls-guest.sh" "$root/init"
}

for name in qemu-system-x86_64 busybox cpio curl openssl; do
    command -v "$name" >/dev/null || skip "there is no $name"
done
[ -x "$build/monkey" ] && [ -n "$(find "$build" -name monkey-tls.so)" ] || die "no monkey, or no monkey-tls.so, in $build"
ldd "$(command -v busybox)" >/dev/null 2>&1 && skip "busybox is not static (Debian: busybox-static)"
find_kernel
root=$top/root
make_root
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$top/initrd"
timeout "${MONKEY_KTLS_SECONDS:-600}" qemu-system-x86_64 -machine accel="${MONKEY_ACCEL:-tcg}" -cpu max -smp 2 -m 1G -nographic \
    -no-reboot -nic none -kernel "$(find "$kernel/boot" -name 'vmlinuz-*' | sort -V | tail -n 1)" -initrd "$top/initrd" \
    -append 'console=ttyS0 quiet panic=-1' </dev/null | stdbuf -o0 tr -d '\r' | tee "$top/said"
grep -q '^ktls: all is well' "$top/said" || die "something is not well"
