# SPDX-License-Identifier: Apache-2.0
"""Request bodies that are spooled before the script starts: real scripts, bodies without length, slow and disconnecting
clients, and full disks; and the fair distribution of processes among client addresses.
"""
import hashlib
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
from functools import partial

import pytest

from cgi_scripts import PLAIN, ROUTES, SH, serve_scripts
from http2 import Http2Client
from proc import children, descriptors, wait_until

KB, MB = 1 << 10, 1 << 20
# Each script prints CONTENT_LENGTH and the hash of the body that it could read.
SCRIPTS = {
    "sh": PLAIN + "echo ${CONTENT_LENGTH-none}; sha256sum | cut -d' ' -f1\n",
    "python": f"#!{sys.executable} -I\nimport hashlib, os, sys\ndata = sys.stdin.buffer.read(int(os.environ['CONTENT_LENGTH']))\n"
              "assert not sys.stdin.buffer.read(1)\n"
              "print('Content-Type: text/plain\\n\\n' + os.environ['CONTENT_LENGTH'])\nprint(hashlib.sha256(data).hexdigest())\n",
    "perl": "#!/usr/bin/perl -T\nuse Digest::SHA 'sha256_hex';\nbinmode STDIN; read(STDIN, my $data, $ENV{CONTENT_LENGTH});\n"
            "print \"Content-Type: text/plain\\n\\n$ENV{CONTENT_LENGTH}\\n\", sha256_hex($data), \"\\n\";\n",
    "info.php": "<?php header('Content-Type: text/plain'); $data = file_get_contents('php://input');\n"
                "echo $_SERVER['CONTENT_LENGTH'], \"\\n\", hash('sha256', $data), \"\\n\";\n",
}
WAITS = PLAIN + "echo $$ >run.$$; while ! [ -e go ]; do sleep 0.02; done; rm run.$$; cat; echo done\n"
HALF = b"POST /cgi-bin/s HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n" + b"h" * 100_000


@pytest.fixture
def serve(monkey, site):
    return partial(serve_scripts, monkey, site)


@pytest.fixture
def running(site):
    return lambda: len(list((site / "cgi-bin").glob("run.*")))


def answer_to(data):
    return f"{len(data)}\n{hashlib.sha256(data).hexdigest()}\n"


# Bodies without Content-Length

@pytest.mark.parametrize("size", [0, 1, 64 * KB, 64 * KB + 1, 900_000])
@pytest.mark.parametrize("version", ["--http1.1", "--http2-prior-knowledge"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_cgi_spooled_body_has_content_length(serve, name, version, size):
    program = {"perl": "perl", "info.php": "php-cgi"}.get(name, "sh")
    if not shutil.which(program) or (name == "perl" and subprocess.run(["perl", "-MDigest::SHA", "-e", "1"]).returncode):
        pytest.skip(f"needs {program}, and of Perl more than Debian's perl-base")
    server = serve({name: SCRIPTS[name]}, f"Interpreter .php {shutil.which('php-cgi')}" if name == "info.php" else "")
    data = os.urandom(size)
    done = subprocess.run(["curl", "-sS", version, "-X", "POST", "-T", "-", f"{server.url}/cgi-bin/{name}"], input=data, capture_output=True,
                          timeout=50, check=True)
    # If CONTENT_LENGTH is not set, a script sees no body.
    expected = {"sh": "none\n" + answer_to(b"").split("\n", 1)[1]}.get(name) if size == 0 else answer_to(data)
    assert expected is None or done.stdout.decode() == expected


def test_php_cgi_accepts_chunked_form_upload(serve):
    if not shutil.which("php-cgi"):
        pytest.skip("needs php-cgi")
    script = "<?php header('Content-Type: text/plain'); echo $_POST['a'], ' ', $_FILES['f']['size'], ' ', md5_file($_FILES['f']['tmp_name']);"
    server = serve({"form.php": script}, f"Interpreter .php {shutil.which('php-cgi')}")
    data = os.urandom(300_000)
    done = subprocess.run(["curl", "-sS", "-H", "Transfer-Encoding: chunked", "-F", "a=b", "-F", "f=@-", f"{server.url}/cgi-bin/form.php"], input=data,
                          capture_output=True, timeout=50, check=True)
    assert done.stdout.decode() == f"b 300000 {hashlib.md5(data).hexdigest()}"


@pytest.mark.parametrize("size", [10, 200_000])
def test_cgi_spooled_body_is_a_seekable_file(serve, size):
    script = f"#!{sys.executable} -I\nimport os, sys\nfirst = sys.stdin.buffer.read()\nos.lseek(0, 0, 0)\nassert os.fstat(0).st_nlink == 0\n" \
        "print('Content-Type: text/plain\\n\\n%s %d' % (first == open(0, 'rb').read(), len(first)))\n"
    reply = serve({"s": script}).get("/cgi-bin/s", "POST", body=b"x" * size)
    assert reply.text == f"True {size}\n"


def test_cgi_spooled_body_over_limit_gets_413(serve):
    server = serve({"s": SCRIPTS["sh"]}, server="MaxBodySize 200K")
    data = b"x" * (201 * KB)
    assert server.get("/cgi-bin/s", "POST", {"Transfer-Encoding": "chunked"}, b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)).status == 413
    assert server.get("/cgi-bin/s", "POST", body=data).status == 413
    with Http2Client(server.addresses[0]) as c:
        c.ask("/cgi-bin/s", "POST", body=data, streamed=True)
        assert c.read("POST").status == 413


# Only complete requests occupy processes

@pytest.mark.parametrize("length", [True, False])
def test_cgi_incomplete_upload_occupies_no_process(serve, length):
    server = serve({"s": SCRIPTS["sh"]}, "MaxProcesses 1\nMaxQueue 1")
    data = os.urandom(100_000)
    with server.connect() as c, Http2Client(server.addresses[0]) as c2:
        c.send(b"POST /cgi-bin/s HTTP/1.1\r\nHost: a\r\n" + (b"Content-Length: 100000\r\n\r\n" if length else b"Transfer-Encoding: chunked\r\n\r\n186a0\r\n") + data[:70_000])
        streams = [c2.ask("/cgi-bin/s", "POST", fields={"Content-Length": "100000"} if length else {}, streamed=True).more(data[:1000]).stream
                   for _ in range(50)]
        for _ in range(3):
            assert server.get("/cgi-bin/s", "POST", body=b"quick").text == answer_to(b"quick")
        wait_until(lambda: not children(children(server.workers[0])[0]), "no script runs")
        c.send(data[70_000:] + (b"" if length else b"\r\n0\r\n\r\n"))
        assert c.read("POST").text == answer_to(data)
        c2.more(data[1000:], streams[7]).done(stream=streams[7])
        assert c2.read("POST", streams[7]).text == answer_to(data)


def test_cgi_slow_upload_times_out_before_script_starts(serve, site):
    server = serve({"s": SH + "touch begun\n" + SCRIPTS["sh"][len(SH):]}, server="MinRate 1000\nMinRateInterval 1s")
    with server.connect() as c:
        c.send(HALF)
        assert c.read("POST").status == 408
    assert not (site / "cgi-bin/begun").exists()


def test_cgi_reload_during_upload_loses_nothing(serve):
    server = serve({"s": SCRIPTS["sh"]})
    with server.connect() as c:
        c.send(HALF)
        wait_until(lambda: files_of(server), "there is a spool file")
        server.tell(signal.SIGHUP)
        server.err.wait_for("configuration")
        c.send(b"h" * 100_000)
        assert c.read("POST").text == answer_to(b"h" * 200_000)


# Clients that disconnect during the upload

@pytest.mark.parametrize("content", ["spool", "refuse", "stream"])
def test_cgi_interrupted_upload_is_no_server_error(serve, tmp_path, content):
    script = SH + "cat >/dev/null\n" + PLAIN[len(SH):] + "echo fine\n"
    server = serve({"s": script}, f"RequestBody {content}\nCancelOnDisconnect off", server="AccessLog access.log")
    log = tmp_path / "access.log"
    for data in (HALF, HALF[:200], b"POST /cgi-bin/s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc"):
        with server.connect() as c:
            c.send(data)
            c.sock.shutdown(socket.SHUT_WR)
            assert c.read("POST").status == 400
    with Http2Client(server.addresses[0]) as c:
        c.ask("/cgi-bin/s", "POST", streamed=True).more(b"x" * 70_000)
        c.sock.shutdown(socket.SHUT_WR)
        c.sock.recv(1 << 20)
    for _ in range(3):
        with Http2Client(server.addresses[0]) as c:
            c.ask("/cgi-bin/s", "POST", streamed=True).more(b"x" * 70_000)
    assert server.get("/cgi-bin/s", "POST", body=b"x").text == "fine\n"
    wait_until(lambda: log.exists() and log.read_text().count("POST") == 8, "all are logged")
    assert not re.search(r'" 5\d\d ', log.read_text()), log.read_text()
    wait_until(lambda: not files_of(server) and not children(children(server.workers[0])[0]), "nothing is left")


# Disks

def files_of(server):
    """Returns the unlinked files that the worker holds open."""
    return [link for link in descriptors(server.workers[0]).values() if link.endswith(" (deleted)")]


def test_cgi_spool_file_is_unlinked_and_closed_after_hand_over(serve, tmp_path, site, running):
    folder = tmp_path / "spool"
    folder.mkdir()
    server = serve({"s": WAITS}, server="SpoolFolder spool")
    with server.connect() as c:
        c.send(HALF)
        wait_until(lambda: files_of(server), "there is a spool file")
        assert all(link.startswith(f"{folder}/") for link in files_of(server)) and not list(folder.iterdir())
        c.send(b"h" * 100_000)
        wait_until(lambda: running() == 1, "the script runs")
        wait_until(lambda: not files_of(server), "the worker has closed it")
        site.add("cgi-bin/go")
        assert c.read("POST").text == "h" * 200_000 + "done\n"


def test_cgi_small_body_needs_no_spool_file(serve):
    server = serve({"s": SCRIPTS["sh"]})
    with server.connect() as c:
        c.send(b"POST /cgi-bin/s HTTP/1.1\r\nHost: a\r\nContent-Length: 65536\r\n\r\n" + b"x" * 65535)
        assert server.get("/page.txt").text == "the page"
        assert not files_of(server)
        assert c.send(b"x").read("POST").text == answer_to(b"x" * 65536)


def limit_files(server, size):
    for pid in server.workers:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_cgi_file_size_limit_on_spooling_gets_507(serve):
    server = serve({"s": SCRIPTS["sh"]})
    worker = server.workers
    limit_files(server, 100 * KB)
    for data in (b"x" * (300 * KB), b"y" * (64 * KB)):
        reply = server.get("/cgi-bin/s", "POST", body=data)
        assert reply.status == (507 if len(data) > 100 * KB else 200)
    server.err.wait_for("cannot write the body to the SpoolFolder /var/tmp: No space left on device")
    limit_files(server, resource.RLIM_INFINITY)
    assert server.get("/cgi-bin/s", "POST", body=b"x" * (300 * KB)).text == answer_to(b"x" * (300 * KB))
    assert server.workers == worker


def test_cgi_full_disk_gets_507_until_space_is_free(serve, tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "small", folder], check=False).returncode:
        pytest.skip("needs root, to mount a small disk")
    try:
        server = serve({"s": SCRIPTS["sh"]}, server="SpoolFolder small")
        with server.connect() as c:
            c.send(b"POST /cgi-bin/s HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n" + b"x" * 150_000)
            wait_until(lambda: files_of(server), "there is a spool file")
            assert server.get("/cgi-bin/s", "POST", body=b"x" * 199_000).status == 507
            assert server.get("/cgi-bin/s", "POST", body=b"x" * 50_000).status == 200
        wait_until(lambda: not files_of(server), "the spool file is closed")
        assert server.get("/cgi-bin/s", "POST", body=b"x" * 199_000).text == answer_to(b"x" * 199_000)
        server.err.wait_for("No space left on device")
        server.stop()
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_cgi_one_address_may_use_half_of_spool_max(serve):
    server = serve({"s": SCRIPTS["sh"]}, server="SpoolMax 500K")
    head = b"POST /cgi-bin/s HTTP/1.1\r\nHost: a\r\nContent-Length: 240000\r\n\r\n"
    with server.connect(source="127.0.0.2") as c, server.connect(source="127.0.0.2") as c2, server.connect(source="127.0.0.3") as other:
        c.send(head + b"x" * 200_000)
        c2.send(head + b"x" * 200_000)
        refused = wait_for_one([c, c2]).read("POST")
        assert refused.status == 503 and refused["Retry-After"] == "1"
        body = b"x" * 200_000
        assert other.get("/cgi-bin/s", "POST", body=body).text == answer_to(body)
    server.err.wait_for("SpoolMax, or the half of it that one client may use, is exhausted")


@pytest.mark.parametrize("folder,message", [("nowhere/at/all", "No such file or directory"), ("/proc", "its file system does not support O_TMPFILE")])
def test_cgi_unusable_spool_folder_is_rejected(serve, folder, message):
    server = serve({"s": SCRIPTS["sh"]}, server=f"SpoolFolder {folder}", expect_start=False)
    server.exit_code = 3
    server.wait()
    text = server.err.text
    assert "SpoolFolder" in text and message in text and re.search(r"monkey\.conf:\d+", text), text


def test_spool_folder_is_ignored_without_a_spooling_plugin(monkey, site):
    site.add("page.txt", "the page")
    assert monkey(server="SpoolFolder /nowhere").get("/page.txt").text == "the page"


def test_cgi_printed_config_has_spool_keys(serve):
    server = serve({"s": SCRIPTS["sh"]}, "MaxProcesses 8")
    printed = subprocess.run([*server.process.args[:1], "-T", "-c", server.config], capture_output=True, text=True, check=True).stdout
    for name, value in (("SpoolFolder", "/var/tmp"), ("SpoolMax", "1G"), ("MaxRunTime", "5m"), ("RequestBody", "spool")):
        assert re.search(rf"^ +{name} +{value}$", printed, re.MULTILINE), f"{name} {value}\n{printed}"


# Fair shares

def ask_from(server, address, n=1):
    clients = [server.connect(source=address) for _ in range(n)]
    for c in clients:
        c.ask("/cgi-bin/s", "POST", body=b"x")
    return clients


def test_cgi_one_address_leaves_processes_for_others(serve, site, running):
    server = serve({"s": WAITS}, "MaxProcesses 4")
    greedy = ask_from(server, "127.0.0.2", 6)
    wait_until(lambda: running() == 3, "its three scripts run")
    other = ask_from(server, "127.0.0.3")
    wait_until(lambda: running() == 4, "the other client's script runs at once")
    site.add("cgi-bin/go")
    for c in [*greedy, *other]:
        assert c.read("POST").text == "xdone\n"
        c.close()


def test_cgi_one_http2_connection_leaves_processes_for_others(serve, site, running):
    server = serve({"s": WAITS}, "MaxProcesses 4")
    with Http2Client(server.addresses[0], source="127.0.0.2") as c:
        streams = [c.ask("/cgi-bin/s", "POST", body=b"x").stream for _ in range(20)]
        wait_until(lambda: running() == 3, "its three scripts run")
        (other,) = ask_from(server, "127.0.0.3")
        wait_until(lambda: running() == 4, "the other client's script runs at once")
        site.add("cgi-bin/go")
        assert other.read("POST").text == "xdone\n"
        other.close()
        assert all(c.read("POST", s).text == "xdone\n" for s in streams)


def test_cgi_one_address_may_use_all_processes_if_configured(serve, site, running):
    server = serve({"s": WAITS}, "MaxProcesses 4\nMaxProcessesPerAddress 4")
    clients = ask_from(server, "127.0.0.2", 4)
    wait_until(lambda: running() == 4, "all run")
    site.add("cgi-bin/go")
    assert all(c.read("POST").text == "xdone\n" for c in clients)
    for c in clients:
        c.close()


def test_cgi_single_process_is_shared_by_all_clients(serve):
    server = serve({"s": PLAIN + "echo fine\n"}, "MaxProcesses 1")
    assert server.get("/cgi-bin/s").text == "fine\n"


def test_cgi_address_with_fewest_scripts_is_next(serve, site):
    """Three requests of 127.0.0.2 and one of 127.0.0.4 wait: the request of 127.0.0.4 is served second, not last."""
    script = PLAIN + "echo $REMOTE_ADDR >>order; while ! [ -e go -o -e go.$REMOTE_ADDR ]; do sleep 0.02; done\n"
    server = serve({"s": script}, "MaxProcesses 2\nMaxProcessesPerAddress 1")
    begun = lambda: (site / "cgi-bin/order").read_text().split()
    clients = ask_from(server, "127.0.0.2", 2)
    wait_until(lambda: len(begun()) == 1, "the first runs")
    clients += ask_from(server, "127.0.0.3")
    wait_until(lambda: len(begun()) == 2, "the script of the other address runs")
    clients += ask_from(server, "127.0.0.4") + ask_from(server, "127.0.0.2", 2)
    assert server.get("/page.txt").status == 200
    site.add("cgi-bin/go.127.0.0.2")  # one process keeps running from here on, so the other one serves all requests
    wait_until(lambda: len(begun()) == 4, "the script of the last address runs")
    assert begun() == ["127.0.0.2", "127.0.0.3", "127.0.0.2", "127.0.0.4"]
    site.add("cgi-bin/go")
    for c in clients:
        assert c.read("POST").status == 200
        c.close()


def test_cgi_full_queue_admits_a_new_address(serve, site, running):
    server = serve({"s": WAITS}, "MaxProcesses 2\nMaxQueue 4")
    (first,) = ask_from(server, "127.0.0.2")
    wait_until(lambda: running() == 1, "its script runs")
    others = ask_from(server, "127.0.0.5")
    wait_until(lambda: running() == 2, "all processes are busy")
    greedy = ask_from(server, "127.0.0.2", 5)
    refused = wait_for_one(greedy)
    assert refused.read("POST").status == 503
    (late,) = ask_from(server, "127.0.0.3")
    displaced = wait_for_one([c for c in greedy if c is not refused])
    assert displaced.read("POST").status == 503
    site.add("cgi-bin/go")
    for c in [first, late, *others, *(c for c in greedy if c not in (refused, displaced))]:
        assert c.read("POST").text == "xdone\n"
    for c in [first, late, *others, *greedy]:
        c.close()


def wait_for_one(clients):
    """Returns the first client that receives a response."""
    import select
    readable, _, _ = select.select([c.sock for c in clients], [], [], 30)
    assert len(readable) == 1, f"{len(readable)} have a response"
    return next(c for c in clients if c.sock is readable[0])


def test_cgi_storm_of_uploads_leaves_no_files(serve):
    server = serve({"s": SCRIPTS["sh"]}, "MaxProcesses 4\nMaxQueue 1000\nQueueTimeout 60s")
    failures = []

    def upload(number):
        try:
            data = os.urandom(1000 + 13_000 * number)
            with server.connect(source=f"127.0.0.{2 + number % 5}") as c:
                assert c.get("/cgi-bin/s", "POST", body=data).text == answer_to(data)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=upload, args=(i,)) for i in range(30)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not failures
    wait_until(lambda: not files_of(server), "no file is left")


# Late stderr output

def test_cgi_late_stderr_goes_to_log_of_the_host(monkey, site, tmp_path):
    site.add("cgi-bin/s", PLAIN + "echo early >&2; echo fine; exec >&-\nwhile ! [ -e go ]; do sleep 0.02; done\necho afterwards >&2\n", mode=0o755)
    server = monkey(plugins=["cgi", "logger"], host="ServerName a.example", sections=f"[LOGGER]\n    ErrorLog host.log\n{ROUTES}")
    log = tmp_path / "host.log"
    assert server.get("/cgi-bin/s", fields={"Host": "a.example"}).text == "fine\n"
    site.add("cgi-bin/go")
    wait_until(lambda: log.exists() and "afterwards" in log.read_text(), "the late line")
    early, late = log.read_text().splitlines()
    assert early.endswith(": cgi: early") and late.endswith(": cgi: afterwards") and "GET /cgi-bin/s from 127.0.0.1" in late
    assert "afterwards" not in server.err.text
