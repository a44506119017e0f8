#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# need.sh PURPOSE... [--if-possible PURPOSE...]: installs missing packages for the given purposes with apt-get. It prints their
# names, and nothing if all packages are installed. Without apt-get or root it lists the missing packages, and fails if one of
# them is mandatory; purposes after --if-possible never fail. It starts no service of the installed packages, neither now nor at
# boot: see keep_quiet and leave_disabled.
#
# Columns of the table: purpose, package (with ? if optional), and the check for its presence: `command NAME`, `server NAME` (also
# in sbin), `pkg-config NAME`, `file PATH` or one of the functions below. NEED_ROOT replaces / in tests.
set -u
root=${NEED_ROOT:-}

table='
make    make             command make

build   cmake            command cmake
build   ninja-build      command ninja
build   gcc              command cc
build   libc6-dev        headers_of_libc

full    pkg-config       command pkg-config
full    libssl-dev       pkg-config libssl
full    libnghttp2-dev   pkg-config libnghttp2
full    libpcre2-dev     pkg-config libpcre2-8
full    zlib1g-dev       pkg-config zlib
full    libbrotli-dev    pkg-config libbrotlienc
full    libzstd-dev      pkg-config libzstd
full    libcrypt-dev     pkg-config libcrypt
full    nettle-dev       pkg-config nettle
full    libcurl4-openssl-dev pkg-config libcurl
full    libjansson-dev   pkg-config jansson
full    libqrencode-dev  pkg-config libqrencode
full    liblmdb-dev      pkg-config lmdb
full    libsqlite3-dev   pkg-config sqlite3
full    libpq-dev        pkg-config libpq
full    libmaxminddb-dev pkg-config libmaxminddb

check   ccache?          command ccache
check   g++              command g++
check   libcmocka-dev    pkg-config cmocka
check   libboost-context-dev? boost_context
check   python3          command python3
check   python3-venv     python_with_venv
check   python3-dev      headers_of_python
check   ca-certificates? file /etc/ssl/certs/ca-certificates.crt
check   curl             command curl
check   brotli?          command brotli
check   zstd?            command zstd
check   wget             command wget
check   perl?            whole_perl
check   php-cgi?         command php-cgi
check   php-fpm?         php_fpm
check   dokuwiki?        file /usr/share/dokuwiki/doku.php
check   uwsgi-core?      command uwsgi-core
check   uwsgi-plugin-python3? file /usr/lib/uwsgi/plugins/python3_plugin.so
check   nodejs?          command node
check   iproute2         command ss
check   procps           command ps
check   apache2-utils    command ab
check   wrk              command wrk
check   siege            command siege
check   nginx-light?     command nginx
check   valgrind         command valgrind
check   redis-server?    command redis-server
check   memcached?       command memcached
check   postgresql?      a_postgresql
check   pgbouncer?       server pgbouncer
check   clang-format?    any_clang_format
check   pebble?          command pebble
check   bind9?           server named
check   bind9-dnsutils?  command nsupdate
check   chromium?        any_chromium
check   libnss3-tools?   command certutil
check   openssl          command openssl
check   nghttp2-client?  command h2load
check   golang-go?       any_go
check   libuv1-dev?      pkg-config libuv
check   libglib2.0-dev?  pkg-config glib-2.0
check   libevent-dev?    pkg-config libevent
check   musl-tools?      command musl-gcc
check   clang?           command clang
check   libclang-rt-dev? fuzzer_of_clang

bench   wrk              command wrk
bench   util-linux       command taskset
bench   valgrind         command valgrind
bench   python3          command python3
bench   python3-venv     python_with_venv
bench   openssl          command openssl
bench   nghttp2-client?  command h2load
bench   nghttp2-server?  command nghttpd
bench   nginx-light?     server nginx
bench   php-fpm?         php_fpm
bench   lighttpd?        server lighttpd
bench   lighttpd-mod-openssl? file /usr/lib/lighttpd/mod_openssl.so
bench   h2o?             server h2o
bench   pkg-config?      command pkg-config
bench   libmicrohttpd-dev? pkg-config libmicrohttpd
bench   libuv1-dev?      pkg-config libuv
bench   libevent-dev?    pkg-config libevent

contest gcc              command cc
contest python3          command python3
contest python3-venv     python_with_venv
contest openssl          command openssl
contest util-linux       command taskset
contest curl             command curl
contest wrk              command wrk
contest nghttp2-client?  command h2load
contest apache2-utils?   command ab
contest siege?           command siege
contest sqlite3-doc?     file /usr/share/doc/sqlite3/about.html
contest nginx-light?     server nginx
contest lighttpd?        server lighttpd
contest lighttpd-mod-openssl? file /usr/lib/lighttpd/mod_openssl.so
contest lighttpd-modules-lua? file /usr/lib/lighttpd/mod_magnet.so
contest apache2-bin?     server apache2
contest h2o?             server h2o
contest caddy?           server caddy
contest php-fpm?         php_fpm
contest busybox-static?  command busybox
contest nodejs?          command node
contest golang-go?       command go
contest npm?             command npm
contest redis-server?    command redis-server
contest postgresql?      a_postgresql
contest varnish?         server varnishd
contest trafficserver?   server traffic_server
contest mini-httpd?      server mini_httpd

arm     qemu-user        command qemu-arm
arm     gcc-arm-linux-gnueabihf command arm-linux-gnueabihf-gcc
arm     libc6-dev-armhf-cross file /usr/arm-linux-gnueabihf/include/stdio.h
arm     gcc-aarch64-linux-gnu command aarch64-linux-gnu-gcc
arm     libc6-dev-arm64-cross file /usr/aarch64-linux-gnu/include/stdio.h
arm     pkg-config       command pkg-config
arm     python3          command python3
arm     siege            command siege

ktls    qemu-system-x86  command qemu-system-x86_64
ktls    busybox-static   static_busybox
ktls    cpio             command cpio
ktls    curl             command curl
ktls    openssl          command openssl
ktls    strace?          command strace

apps    php-fpm          php_fpm
apps    dokuwiki         file /usr/share/dokuwiki/doku.php
apps    wordpress        file /usr/share/wordpress/index.php
apps    wordpress-theme-twentytwentythree file /usr/share/wordpress/wp-content/themes/twentytwentythree/style.css
apps    mariadb-server-core server mariadbd
apps    openssl          command openssl

fuzz    clang            command clang
fuzz    libclang-rt-dev  fuzzer_of_clang
'

headers_of_libc() { echo '#include <stdio.h>' | cc -E - >/dev/null 2>&1; }
python_with_venv() { "${PYTHON:-python3}" -c 'import venv, ensurepip' >/dev/null 2>&1; }
headers_of_python() {
    "${PYTHON:-python3}" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))'
} >/dev/null 2>&1
static_busybox() { command -v busybox && ! ldd "$(command -v busybox)"; } >/dev/null 2>&1
any_chromium() { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null
php_fpm() { ls "$root"/usr/sbin/php-fpm* >/dev/null 2>&1; }
whole_perl() { perl -MDigest::SHA -e 1; } >/dev/null 2>&1
a_postgresql() { ls "$root"/usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb; } >/dev/null
boost_context() { ls "$root"/usr/lib*/libboost_context.a || ls "$root"/usr/lib/*/libboost_context.a; } >/dev/null 2>&1
any_clang_format() { command -v clang-format; } >/dev/null
any_go() { command -v go || test -x /usr/local/go/bin/go; } >/dev/null
fuzzer_of_clang() {
    echo 'int LLVMFuzzerTestOneInput(const char *d, long n); int LLVMFuzzerTestOneInput(const char *d, long n) { return !d + !n; }' |
        clang -x c -fsanitize=fuzzer,address - -o /dev/null >/dev/null 2>&1
}

say() { printf 'need: %s\n' "$*" >&2; }

is_there() {
    case $1 in
        command) command -v "$2" >/dev/null ;;
        server) PATH=$PATH:$root/usr/local/sbin:$root/usr/sbin command -v "$2" >/dev/null ;;
        file) test -e "$root$2" ;;
        pkg-config) pkg-config --exists "$2" 2>/dev/null ;;
        *) "$1" ;;
    esac
}

# Sets `musts` and `mays` to the missing packages of the purposes in `wanted` and `wished`.
look() {
    local purpose package probe
    musts=() mays=()
    while read -r purpose package probe; do
        [[ -n $purpose && " $wanted $wished " == *" $purpose "* ]] || continue
        # shellcheck disable=SC2086 # the probe is a command and its argument
        is_there $probe && continue
        if [[ $package == *\? || " $wanted " != *" $purpose "* ]]; then
            mays+=("${package%\?}")
        else
            musts+=("$package")
        fi
    done <<<"$table"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# policy-rc.d keeps Debian from starting the services of new packages: a server needed for a test must not occupy port 80. An
# existing script belongs to the administrator and is kept.
policy=$root/usr/sbin/policy-rc.d
keep_quiet() {
    [ ! -e "$policy" ] || return 0
    trap speak_again EXIT
    trap 'exit 130' INT TERM HUP
    as_root sh -c 'printf "#!/bin/sh\nexit 101\n" >"$1" && chmod 755 "$1"' sh "$policy"
}

speak_again() { as_root rm -f "$policy"; }

# Prints the services that are enabled at boot.
enabled() {
    command -v systemctl >/dev/null || return 0
    systemctl list-unit-files --type=service --state=enabled --no-legend --plain 2>/dev/null | while read -r unit _; do
        echo "$unit"
    done
}

# policy-rc.d has no effect at boot: packages also enable their services.
leave_disabled() {
    local before=$1 unit new=()
    while read -r unit; do
        [[ -z $unit || $'\n'$before$'\n' == *$'\n'"$unit"$'\n'* ]] || new+=("$unit")
    done <<<"$(enabled)"
    [ ${#new[@]} -gt 0 ] || return 0
    if as_root systemctl --quiet disable "${new[@]}" >/dev/null 2>&1; then
        say "these services are not enabled at boot: ${new[*]} (systemctl enable NAME changes that)"
    else
        say "could not disable services that now start at boot: systemctl disable ${new[*]}"
    fi
}

apt() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" >/dev/null
}

is_known() { ! command -v apt-cache >/dev/null || [ -n "$(apt-cache --names-only search "^$1\$" 2>/dev/null)" ]; }

give_up() {
    say "$*"
    exit 1
}

wanted= wished= is_wish=
for purpose; do
    if [ "$purpose" = --if-possible ]; then
        is_wish=1
        continue
    fi
    [[ $table == *$'\n'"$purpose "* ]] || give_up "unknown purpose: $purpose"
    if [ -n "$is_wish" ]; then wished+=" $purpose"; else wanted+=" $purpose"; fi
done
look
[ $((${#musts[@]} + ${#mays[@]})) -gt 0 ] || exit 0

how=
command -v apt-get >/dev/null || how="this system has no apt-get (the names are Debian's)"
[ -n "$how" ] || [ "$(id -u)" = 0 ] || command -v sudo >/dev/null ||
    how="as root, run: apt-get install --no-install-recommends"
all=("${musts[@]}" "${mays[@]}")
if [ -n "$how" ]; then
    [[ $how != "as root"* ]] || how+=" ${all[*]}"
    [ ${#musts[@]} -eq 0 ] || give_up "missing: ${all[*]}; $how"
    say "continuing without ${mays[*]}; $how"
    exit 0
fi

say "installing ${all[*]}"
keep_quiet || give_up "could not write $policy, which keeps services of these packages from being started"
before=$(enabled) failed=
apt update || say "apt-get update failed; trying with the existing lists"
if [ ${#musts[@]} -gt 0 ]; then
    apt install -y --no-install-recommends "${musts[@]}" || failed="apt-get could not install: ${musts[*]}"
fi
[ -z "$failed" ] || mays=()
known=()
for package in "${mays[@]}"; do
    if is_known "$package"; then
        known+=("$package")
    else
        say "continuing without $package, which this system does not have"
    fi
done
# Installing all at once takes a third of the time, but one failing package stops the others.
if [ ${#known[@]} -gt 0 ] && ! apt install -y --no-install-recommends "${known[@]}" 2>/dev/null; then
    for package in "${known[@]}"; do
        apt install -y --no-install-recommends "$package" 2>/dev/null || say "continuing without $package"
    done
fi
leave_disabled "$before"
[ -z "$failed" ] || give_up "$failed"
look
[ ${#musts[@]} -eq 0 ] || give_up "installed, but still not found: ${musts[*]}"
