#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# The init process of the virtual machine that ktls.sh starts: serves files to curl and openssl, first with a kernel without TLS,
# then with one that supports it, reports failed checks and powers off.
/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
ip link set lo up
cd /tmp || exit

failed=0
at=https://localhost:8443
get="curl -sS --no-progress-meter --cacert /monkey/cert.pem --max-time 200"

# check NAME COMMAND...: the command must succeed.
check() {
    local name=$1
    shift
    if "$@" >/tmp/said 2>&1; then
        echo "ok      $name"
    else
        echo "NOT OK  $name"
        tail -n 5 /tmp/said | cut -c 1-300
        failed=$((failed + 1))
    fi
}

stat() { awk -v k="Tls$1" '$1 == k {n = $2} END {print n + 0}' /proc/net/tls_stat 2>/dev/null || echo 0; }

# Returns whether the kernel has counted at least $2 more sessions since $1.
counted() { [ "$(stat TxSw)" -ge $(($1 + $2)) ]; }

# ---- The server ----

write_site() {
    echo small >/www/small.txt
    head -c 200000 /dev/urandom >/www/medium.bin
    head -c 52428800 /dev/urandom >/www/large.bin
    cat >/www/cgi-bin/upload.sh <<'END'
#!/bin/sh
echo "Content-Type: text/plain"
echo
sha256sum
END
    cat >/www/cgi-bin/slow.sh <<'END'
#!/bin/sh
echo "Content-Type: text/plain"
echo
echo first
sleep 2
head -c $((3000000 + QUERY_STRING)) /www/large.bin
END
    chmod +x /www/cgi-bin/*
    cat >/monkey/monkey.conf <<'END'
[SERVER]
    Listen       127.0.0.1:8443 tls
    Listen       127.0.0.1:8080
    Workers      1
    Certificate  cert.pem key.pem
    MinRate      off
    ErrorLog     /log/error.log

[PLUGINS]
    Load         cgi

[HOST]
    DocumentRoot /www

[ROUTES]
    /cgi-bin/*   cgi
    /*           static

[HOST]
    ServerName          closed
    DocumentRoot        /www
    ClientCertificates  required
    ClientAuthority     cert.pem
END
}

start() {
    : >/log/error.log
    /monkey/monkey -c /monkey/monkey.conf >/log/out 2>&1 &
    master=$!
    for _ in $(seq 100); do
        $get -o /dev/null http://localhost:8080/small.txt 2>/dev/null && return
        kill -0 "$master" 2>/dev/null || break
        sleep .2
    done
    cat /log/out /log/error.log
    finish "monkey does not start"
}

stop() {
    kill -TERM "$master"
    wait "$master"
}

worker() { tr " " "\n" <"/proc/$master/task/$master/children" | grep . | tail -n 1; }

# ---- Checks ----

same() { # FILE CURL-OPTIONS...
    local file=$1
    shift
    $get "$@" -o got "$at/$file" && cmp got "/www/$file"
}

part() { # FROM TO CURL-OPTIONS...
    local from=$1 to=$2
    shift 2
    $get "$@" -r "$from-$to" -o got "$at/large.bin" || return
    dd if=/www/large.bin bs=1M skip="${from}B" count="$((to - from + 1))B" iflag=fullblock 2>/dev/null >want ||
        tail -c "+$((from + 1))" /www/large.bin | head -c "$((to - from + 1))" >want
    cmp got want
}

uploads() {
    $get "$@" --data-binary @/www/medium.bin -H 'Content-Type: x/y' -o got "$at/cgi-bin/upload.sh" &&
        [ "$(cut -c 1-64 got)" = "$(sha256sum </www/medium.bin | cut -c 1-64)" ]
}

many() { # over one connection
    $get "$@" -w '%{num_connects} %{http_code}\n' -o '/tmp/many#1' "$at/small.txt?[1-150]" >counts || return
    rm -f /tmp/many*
    [ "$(grep -c ' 200$' counts)" = 150 ] && [ "$(awk '{n += $1} END {print n}' counts)" = 1 ]
}

streams() { # concurrently
    $get --http2 -Z --parallel-max 8 -o '/tmp/s#1' "$at/medium.bin?[1-16]" || return
    for i in $(seq 16); do
        cmp "/tmp/s$i" /www/medium.bin || return
    done
    rm -f /tmp/s?*
}

slow() {
    $get "$@" --limit-rate 1500k -r 0-4999999 -o got "$at/large.bin" && head -c 5000000 /www/large.bin | cmp - got
}

first_comes_soon() { # response headers held back until the TLS record is full would arrive with the rest
    timeout 60 $get "$@" -N -o got "$at/cgi-bin/slow.sh" &
    for _ in $(seq 100); do
        grep -q first got 2>/dev/null && break
        sleep .1
    done
    [ "$(wc -c <got)" -lt 1000 ] || return
    wait $! && tail -c +7 got >rest && head -c 3000000 /www/large.bin | cmp - rest
}

abort() {
    local n
    for n in 1 2 3; do
        timeout 1 $get "$@" --limit-rate 200k -o /dev/null "$at/large.bin"
    done
    same small.txt "$@"
}

client() { openssl s_client -connect localhost:8443 -CAfile /monkey/cert.pem -servername localhost "$@" 2>&1; }

ends_well() { # until EOF: only close_notify proves that the response is complete
    printf 'GET /cgi-bin/slow.sh HTTP/1.0\r\n\r\n' | client -ign_eof -msg "$@" >got
    grep -a -q '<<< .*warning close_notify' got
}

resumes() {
    (printf 'GET /small.txt HTTP/1.0\r\n\r\n') | client -ign_eof -sess_out session "$@" >/dev/null
    (printf 'GET /small.txt HTTP/1.0\r\n\r\n') | client -ign_eof -sess_in session "$@" >got
    grep -q '^Reused' got && grep -q '^small' got
}

changes_keys() { # LETTER: k updates the client's key, K also the server's
    (sleep 2; echo "$1"; sleep 2; printf 'GET /small.txt HTTP/1.0\r\n\r\n'; sleep 3) | client -tls1_3 >got
    grep -q '^KEYUPDATE' got && grep -q '^small' got
}

is_refused() { # an unsupported key update closes only this connection
    local before
    before=$(worker)
    ! changes_keys K && [ "$(worker)" = "$before" ] && same small.txt
}

is_not_trusted() {
    local before
    before=$(worker)
    ! curl -sS -o /dev/null "$at/small.txt" && [ "$(worker)" = "$before" ] && same small.txt
}

pipelined() {
    (for _ in $(seq 50); do printf 'GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n'; done
        printf 'GET /medium.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n') |
        client -ign_eof -quiet "$@" >got
    [ "$(grep -a -c '^small' got)" = 50 ] && tail -c 200000 got | cmp - /www/medium.bin
}

reloads() {
    local before
    before=$(worker)
    $get --limit-rate 1500k -r 0-4999999 -o got "$at/large.bin" &
    sleep 1
    kill -HUP "$master"
    wait $! && head -c 5000000 /www/large.bin | cmp - got || return
    for _ in $(seq 100); do
        [ "$(worker)" != "$before" ] && [ "$(wc -w <"/proc/$master/task/$master/children")" = 1 ] && break
        sleep .2
    done
    [ "$(worker)" != "$before" ] && same small.txt
}

slowly() {
    local piece
    piece=$(mktemp)
    while dd bs=64k count=1 2>/dev/null >"$piece" && [ -s "$piece" ]; do
        cat "$piece"
        usleep 20000
    done
}

ends_well_when_slow() { # repeated: whether the socket buffer has space for the alert depends on timing
    local n clients=
    for n in 1 2 3 4 5 6; do
        printf 'GET /cgi-bin/slow.sh?%s HTTP/1.0\r\n\r\n' $((n * 7001)) | client -ign_eof -msg "$@" | slowly >"got$n" &
        clients="$clients $!"
    done
    wait $clients
    for n in 1 2 3 4 5 6; do
        grep -a -q '<<< .*warning close_notify' "got$n" || return
    done
}

slow_ones() { # concurrently
    local i
    $get --http1.1 -Z --limit-rate 700k -r 0-2999999 -o '/tmp/s#1' "$at/large.bin?[1-6]" || return
    for i in $(seq 6); do
        head -c 3000000 /www/large.bin | cmp - "/tmp/s$i" || return
    done
    rm -f /tmp/s?*
}

shows_nothing() { # with required client certificates: in TLS 1.3 the kernel encrypts before the server has verified the client
    printf 'GET /small.txt HTTP/1.0\r\n\r\n' | openssl s_client -connect localhost:8443 -servername closed -ign_eof -msg "$@" >got 2>&1
    grep -a -q '<<< .*Alert.*fatal' got && ! grep -q '^small' got
}

is_seen() { # system calls of the worker
    strace -f -o trace -e trace=setsockopt,sendfile,sendto,sendmsg -p "$(worker)" &
    sleep 2
    same large.bin "$@"
    kill $!
    wait $!
    grep -q 'TCP_ULP' trace && grep -E -q 'setsockopt.*(SOL_TLS|0x11a|282)' trace && grep -q 'sendfile.* = [1-9]' trace
}

# ---- Test runs ----

ask_for_files() {
    local version way
    for version in 1.2 1.3; do
        for way in --http1.1 --http2; do
            for file in small.txt medium.bin large.bin; do
                check "TLS $version $way $file" same $file $way --tls-max $version
            done
        done
    done
}

ask_for_all() {
    local way version
    for way in --http1.1 --http2; do
        check "$way part" part 123457 3123456 $way
        check "$way many requests" many $way
        check "$way slow reader" slow $way
        check "$way aborted" abort $way
        check "$way content that comes slowly" first_comes_soon $way
        for version in 1.2 1.3; do
            check "$way upload, TLS $version" uploads $way --tls-max $version
        done
    done
    check "streams" streams
    check "slow readers" slow_ones
    for version in -tls1_2 -tls1_3; do
        check "close_notify $version to a slow reader" ends_well_when_slow $version
        check "no certificate $version" shows_nothing $version
        check "close_notify $version" ends_well $version
        check "resumption $version" resumes $version
        check "pipelined $version" pipelined $version
    done
    check "the client changes its keys" changes_keys k
    check "a client that trusts us not" is_not_trusted
    check "reload" reloads
}

ask_for_ciphers() {
    local name before
    for name in ECDHE-ECDSA-AES128-GCM-SHA256 ECDHE-ECDSA-AES256-GCM-SHA384 ECDHE-ECDSA-CHACHA20-POLY1305; do
        before=$(stat TxSw)
        check "$name" same medium.bin --tls-max 1.2 --ciphers $name
        check "$name in the kernel" counted "$before" 1
    done
    for name in TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256; do
        before=$(stat TxSw)
        check "$name" same medium.bin --tls13-ciphers $name
        check "$name in the kernel" counted "$before" 1
    done
}

finish() {
    [ -z "$1" ] || { echo "NOT OK  $1"; failed=$((failed + 1)); }
    [ $failed = 0 ] && echo "ktls: all is well" || echo "ktls: $failed not well"
    sync
    poweroff -f
}

write_site
echo "== a kernel that does not encrypt"
start
ask_for_files
check "both change keys" changes_keys K
check "nothing went to the kernel" [ "$(stat TxSw)" = 0 ]
stop

echo "== a kernel that has not the ciphers"
insmod /tls.ko || finish "tls.ko cannot be loaded"
start
for version in 1.2 1.3; do
    check "TLS $version medium.bin" same medium.bin --tls-max $version
done
check "nothing went to the kernel" [ "$(stat TxSw)" = 0 ]
stop

echo "== a kernel that encrypts"
ln -s /bin/busybox /sbin/modprobe # the kernel loads modules with modprobe
depmod
start
before=$(stat TxSw)
ask_for_files
check "all of them in the kernel" counted "$before" 12
[ ! -x /bin/strace ] || check "what the worker asks of it" is_seen --http1.1
ask_for_ciphers
ask_for_all
check "new keys are refused to the client" is_refused
check "nothing is wrong in what the kernel counts" [ "$(stat DecryptError)" = 0 ]
stop
check "no worker died" sh -c '! grep -iE "died|assert|crash|signal [0-9]" /log/error.log /log/out'
check "nothing is left in the kernel" [ "$(stat CurrTxSw)" = 0 ]
cat /proc/net/tls_stat
finish ""
