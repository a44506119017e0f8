# SPDX-License-Identifier: Apache-2.0
"""One record for each request, whatever its outcome; lines that no client can break; full disks that do not stop the server."""
import calendar
import fcntl
import json
import os
import re
import signal
import socket
import time

import pytest

from client import Closed
from load import Load
from proc import descriptors, wait_until

pytestmark = pytest.mark.over("h1", "h2-tls", why="records are written alike")

COMBINED = re.compile(r'(?P<peer>\S+) - - \[(?P<time>\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] '
                      r'"(?P<request>(?:[^"\\]|\\x[0-9a-f]{2})*)" (?P<status>\d{3}) (?P<bytes>\d+|-) '
                      r'"(?P<referer>(?:[^"\\]|\\x[0-9a-f]{2})*)" "(?P<agent>(?:[^"\\]|\\x[0-9a-f]{2})*)"\n')
SHORT = re.compile(r"\d\d:\d\d:\d\d (?P<status>\d{3}) (?P<request>.+)  (?P<bytes>\d+) bytes to (?P<peer>\S+?)(, \d+ ms)?\n")


@pytest.fixture
def start(monkey, site, tmp_path):
    site.add("index.html", "hello")

    def run(format="combined", server="", **how):
        return monkey(server=f"AccessLog access.log\nAccessLogFormat {format}\n{server}", **how)

    return run


def lines_of(server, path="access.log"):
    """Returns the log lines of a stopped server."""
    server.stop()
    data = (server.folder / path).read_bytes()
    assert not re.search(rb"[^\x20-\x7e\n]", data), "bytes that a terminal would interpret"
    return data.decode().splitlines(keepends=True)


def version(server):
    return "HTTP/2.0" if server.is_h2 else "HTTP/1.1"


def combined(line):
    match = COMBINED.fullmatch(line)
    assert match, line
    return match


# Bytes that a client may put into the target or a header value in order to break a log line

NASTY = [b'"', b"\\", b'\\"', b"\\x22", b"%22%0a%0d", b"\xff\xfe", b"\xc2\x9b31m", b"\xe2\x80\xae", b"' OR 1=1", b"\t", b"{}[]",
         b'","status":200', b"%1b[2J", b"<script>", b"$(id)`id`", b"-", b"x" * 3000, b'"' * 3000, b"\xff" * 3000]


def ask(server, target=b"/", fields=b""):
    with server.connect() as c:
        c.send(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + fields + b"\r\n")
        return c.read()


# Formats

def test_log_combined_format_has_all_fields(start):
    server = start()
    before = int(time.time())
    server.get("/?q", fields=[("Referer", "http://a/"), ("User-Agent", "me/1.0 (x)")])
    server.get("/none", "HEAD")
    first, second = map(combined, lines_of(server))
    assert (first["peer"], first["request"], first["status"], first["bytes"]) == (
        "127.0.0.1", f"GET /?q {version(server)}", "200", "5")
    assert (first["referer"], first["agent"]) == ("http://a/", "me/1.0 (x)")
    stamp = time.strptime(first["time"], "%d/%b/%Y:%H:%M:%S +0000")
    assert before - 1 <= calendar.timegm(stamp) <= time.time() + 1
    assert (second["request"], second["status"], second["bytes"]) == (f"HEAD /none {version(server)}", "404", "-")
    assert (second["referer"], second["agent"]) == ("-", "-")


@pytest.mark.http1
def test_log_json_format_has_all_fields(start):
    server = start("json")
    server.get("/?q", fields=[("Referer", "http://a/"), ("User-Agent", 'a "b" \\ ü')])
    ask(server, b"/none")
    first, second = map(json.loads, lines_of_json(server))
    assert first["status"] == 200 and first["bytes"] == 5 and first["outcome"] == "ok" and first["ms"] >= 0
    assert first["referer"] == "http://a/" and first["agent"].startswith('a "b" \\ ')
    assert second["status"] == 404
    assert "/?q" in first.values() and "GET" in first.values() and "127.0.0.1" in first.values()


def lines_of_json(server):
    server.stop()
    data = (server.folder / "access.log").read_bytes()
    text = data.decode("utf-8")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text), "characters that a terminal would interpret"
    return text.splitlines()


@pytest.mark.http1
def test_log_short_format_has_all_fields(start):
    server = start("short")
    ask(server, b"/?q")
    match = SHORT.fullmatch(lines_of(server)[0])
    assert match and (match["status"], match["request"], match["bytes"]) == ("200", "GET /?q", "5")


@pytest.mark.http1
@pytest.mark.parametrize("format", ["combined", "json", "short"])
def test_log_lines_cannot_be_broken_by_clients(start, format):
    server = start(format)
    n = 0
    for nasty in NASTY:
        for target, fields in ((b"/" + nasty, b""), (b"/", b"Referer: " + nasty + b"\r\nUser-Agent: " + nasty + b"\r\n")):
            ask(server, target, fields)
            n += 1
    with server.connect() as c:
        c.send(b"\x1b[31m\x00\xff / HTTP/1.1\r\n\r\n").read()
    if format == "json":
        records = [json.loads(line) for line in lines_of_json(server)]
        assert len(records) == n + 1
        assert '"' * 100 in records[NASTY.index(b'"' * 3000) * 2 + 1]["agent"]
        assert records[NASTY.index(b"\xc2\x9b31m") * 2 + 1]["agent"] == "\x9b31m"
    else:
        lines = lines_of(server)
        assert len(lines) == n + 1
        pattern = COMBINED if format == "combined" else SHORT
        assert [line for line in lines if not pattern.fullmatch(line)] == []
        assert max(map(len, lines)) < 4096


@pytest.mark.http1
def test_log_escapes_are_reversible(start):
    """Every escape has the same form: \\xHH."""
    server = start()
    value = b'a"b\\c\xff'
    ask(server, fields=b"User-Agent: " + value + b"\r\n")
    agent = combined(lines_of(server)[0])["agent"]
    assert re.sub(r"\\x(..)", lambda m: chr(int(m[1], 16)), agent).encode("latin-1") == value


def test_log_names_ipv4_ipv6_and_unix_clients(start, tmp_path):
    try:
        server = start(listen=["127.0.0.1:0", "[::1]:0", f"unix:{tmp_path}/socket"])
    except AssertionError:
        pytest.skip("no ::1 here")
    for i in range(3):
        server.get("/", listener=i)
    assert [combined(line)["peer"] for line in lines_of(server)] == ["127.0.0.1", "::1", "unix:"]


# One record for each request

@pytest.mark.http1
def test_log_contains_requests_with_invalid_head(start):
    server = start("json", "Timeout 1s\nMaxURISize 64\nMaxHeaders 8\nMaxHeaderSize 1K\nMaxBodySize 10")
    bad = [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
           b"GET /" + b"x" * 100 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 20 + b"\r\n",
           b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 2000, b"GET / HTTP/1.1\r\nHo",
           b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n", b"BREW / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
           b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"]
    statuses = []
    for data in bad:
        with server.connect() as c:
            statuses.append(c.send(data).read().status)
    records = [json.loads(line) for line in lines_of_json(server)]
    assert [record["status"] for record in records] == statuses == [400, 400, 505, 414, 431, 431, 408, 413, 501, 400]
    assert {record["outcome"] for record in records} == {"rejected", "timeout", "ok"}
    assert records[6]["outcome"] == "timeout" and records[0]["outcome"] == "rejected"


@pytest.mark.http1
def test_log_contains_disconnected_clients(start, site):
    site.add("big", bytes(32 << 20))
    server = start("json", "MinRate off")
    with server.connect() as c:
        c.send(b"GET / HT")
    with server.connect(receive_buffer=4096) as c:
        c.ask("/big")
        c.begin()
    with server.connect() as c:
        pass
    assert server.get("/").text == "hello"
    wait_until(lambda: not server.workers or connections(server) == 0, "the end of all requests")
    records = [json.loads(line) for line in lines_of_json(server)]
    outcomes = sorted((record["outcome"], record["status"]) for record in records)
    assert outcomes == [("client_aborted", 0), ("client_aborted", 200), ("ok", 200)], records
    gone = next(record for record in records if record["outcome"] == "client_aborted" and record["status"] == 200)
    assert 0 < gone["bytes"] < 32 << 20


def connections(server):
    return sum(path.startswith("socket:") for path in descriptors(server.workers[0]).values()) - 2


def test_log_contains_requests_cut_off_by_shutdown(start, site):
    site.add("big", bytes(32 << 20))
    server = start("json", "MinRate off")
    with server.connect(receive_buffer=4096) as c:
        c.ask("/big")
        c.begin()
        record = json.loads(lines_of_json(server)[0])
    assert record["outcome"] == "shutdown" and record["status"] == 200


def test_log_marks_response_of_shrinking_file_as_failed(start, site):
    path = site.add("big", bytes(32 << 20))
    server = start("json", "MinRate off")
    with server.connect(receive_buffer=4096) as c:
        c.ask("/big")
        c.begin()
        os.truncate(path, 1 << 20)
        with pytest.raises((Closed, ConnectionError)):
            c.read()
    wait_until(lambda: connections(server) == 0, "the end of the response")
    record = json.loads(lines_of_json(server)[0])
    assert record["outcome"] == "failed" and record["bytes"] < 32 << 20


def test_log_has_one_record_per_response_under_load(start):
    server = start(workers=2)
    with Load(server) as load:
        load.more(100).check()
    lines = lines_of(server)
    assert len(lines) == sum(load.counts)
    assert {combined(line)["status"] for line in lines} == {"200"}


@pytest.mark.http1
def test_log_has_one_record_per_pipelined_request(start):
    server = start()
    with server.connect() as c:
        for i in range(100):
            c.send(f"GET /?{i} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        for _ in range(100):
            c.read()
    assert [combined(line)["request"] for line in lines_of(server)] == [f"GET /?{i} HTTP/1.1" for i in range(100)]


def test_log_lines_are_flushed_within_seconds(start, tmp_path):
    server = start()
    server.get("/")
    wait_until(lambda: (tmp_path / "access.log").stat().st_size, "a line without further events", 20)


# Destinations

def test_log_of_each_host_is_separate(start, site, tmp_path):
    server = start(host="ServerName one.example", plugins=["logger"], sections="""
        [HOST]
            ServerName two.example
            DocumentRoot site
        [LOGGER]
            AccessLog two.log
        [HOST]
            ServerName off.example
            DocumentRoot site
        [LOGGER]
            AccessLog off
    """)
    for name in ("one", "two", "off"):
        server.get(f"/?{name}", host=f"{name}.example")
    if not server.is_h2:
        server.send(b"nonsense\r\n\r\n")
    assert [combined(line)["request"] for line in lines_of(server)] == [
        f"GET /?one {version(server)}", *([] if server.is_h2 else ["-"])]
    assert [combined(line)["request"] for line in lines_of(server, "two.log")] == [f"GET /?two {version(server)}"]


def test_log_may_be_shared_by_hosts(start, tmp_path):
    server = start(host="ServerName one.example", plugins=["logger"], sections=f"""
        [LOGGER]
            AccessLog {tmp_path}/access.log
        [HOST]
            ServerName two.example
            DocumentRoot site
        [LOGGER]
            AccessLog access.log
    """)
    for name in ("one", "two"):
        server.get(f"/?{name}", host=f"{name}.example")
    assert [combined(line)["request"][6:9] for line in lines_of(server)] == ["one", "two"]


def test_log_may_be_standard_output(monkey, site):
    site.add("index.html", "hello")
    server = monkey(server="AccessLog stdout")
    server.get("/?out")
    server.stop()
    assert COMBINED.fullmatch(server.out.text.splitlines(keepends=True)[-1])["request"] == f"GET /?out {version(server)}"


def test_log_file_is_appended(start, tmp_path):
    (tmp_path / "access.log").write_text("before\n")
    server = start()
    server.get("/")
    assert lines_of(server)[0] == "before\n"


def test_log_is_not_readable_by_other_users(start, tmp_path):
    server = start(server="ErrorLog error.log")
    server.get("/")
    server.stop()
    for name in ("access.log", "error.log"):
        assert (tmp_path / name).stat().st_mode & 0o007 == 0, name


def test_log_fifo_without_reader_is_rejected(run, tmp_path, site):
    """The server must not wait for a reader when it opens the FIFO."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "c").write_text("[SERVER]\n    AccessLog pipe\n[HOST]\n    DocumentRoot site\n")
    done = run("-t", "-c", "c")
    assert done.code == 3 and "cannot open the log" in done.err and "No such device or address" in done.err


def test_log_fifo_that_is_full_does_not_block(start, tmp_path):
    os.mkfifo(tmp_path / "access.log")
    reader = os.open(tmp_path / "access.log", os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    server = start()
    with server.connect() as c:
        for _ in range(500):
            assert c.get("/?" + "x" * 700).text == "hello"
    server.err.wait_for(r"\[error\] \d+: \d+ lines of the log \S+ were lost: its reader is too slow")
    os.close(reader)


def test_log_fifo_may_lose_its_reader(start, site, tmp_path):
    os.mkfifo(tmp_path / "access.log")
    reader = os.open(tmp_path / "access.log", os.O_RDONLY | os.O_NONBLOCK)
    server = start()
    server.get("/?x")
    got = b""

    def read():
        nonlocal got
        try:
            got += os.read(reader, 4096)
        except BlockingIOError:
            pass
        return b"/?x" in got

    wait_until(read, "a line")
    os.close(reader)
    for _ in range(3):
        assert server.get("/").text == "hello"


def test_log_on_full_disk_does_not_stop_the_server(monkey, site):
    site.add("index.html", "hello")
    server = monkey(server="AccessLog /dev/full")
    for _ in range(50):
        assert server.get("/").text == "hello"
    match = server.err.wait_for(r"\[error\] \d+: (\d+) lines of the log /dev/full were lost: No space left on device")
    server.stop()
    lost = re.findall(r"(\d+) lines of the log /dev/full were lost", server.err.text)
    assert sum(map(int, lost)) == 50 and match


def test_error_log_on_full_disk_does_not_stop_the_server(monkey, site):
    site.add("index.html", "hello")
    server = monkey(server="AccessLog /dev/full\nErrorLog /dev/full\nLogLevel debug", workers=2)
    server.config = None  # the fixture must not read /dev/full, which never ends
    with Load(server) as load:
        for number in (signal.SIGHUP, signal.SIGUSR1):
            server.tell(number)
            load.more(5)
        load.check()


# The error log

def test_log_level_selects_messages(monkey, site):
    for level, shown in (("error", False), ("warn", False), ("info", True), ("debug", True)):
        server = monkey(server=f"LogLevel {level}")
        server.stop()
        assert ("[info]" in server.err.text) == shown, level


def test_error_log_lines_have_time_level_and_process(monkey, site, tmp_path):
    server = monkey(server="ErrorLog error.log", workers=2)
    server.tell(signal.SIGHUP)
    wait_until(lambda: "the new configuration" in (tmp_path / "error.log").read_text(), "the reload")
    server.stop()
    text = (tmp_path / "error.log").read_text()
    assert re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} \[(error|warn|info|debug)\] \d+: .+\n)+", text), text
    assert server.err.text == "" and f"{server.pid}: " in text


def test_error_page_missing_is_logged(monkey, site):
    server = monkey(sections="[ERROR_PAGES]\n    404 none.html\n", server="LogLevel debug")
    assert re.search(r"monkey\.conf:\d+:\d+: warning: there is no `none\.html` beneath the document root", server.err.text)
    assert server.get("/x").status == 404
    server.err.wait_for(r"\[debug\] \d+: cannot open the error page none\.html of \S+: No such file")


# Syslog

SYSLOG = "/dev/log"


@pytest.fixture
def no_syslog():
    """Takes a lock, so that no other test creates a syslog socket at the same time."""
    if os.geteuid() != 0:
        pytest.skip(f"only root can make a {SYSLOG}")
    with open("/dev/null") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(SYSLOG):
            pytest.skip("there is a syslog here")
        yield


@pytest.fixture
def syslog(no_syslog):
    """The socket of a syslog that the test provides."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(SYSLOG)
        try:
            yield s
        finally:
            os.unlink(SYSLOG)


def received(syslog):
    lines = []
    syslog.setblocking(False)
    try:
        while True:
            lines.append(syslog.recv(4096).decode())
    except BlockingIOError:
        return lines


def test_syslog_receives_access_and_error_log(monkey, site, syslog):
    site.add("index.html", "hello")
    server = monkey(server="AccessLog syslog\nErrorLog syslog")
    server.config = None
    server.get("/?a")
    server.get("/?b")
    server.stop()
    lines = received(syslog)
    assert all(re.match(r"<\d+>monkey\[\d+\]: ", line) for line in lines), lines
    for target in ("/?a", "/?b"):
        assert [line for line in lines if f"GET {target} {version(server)}" in line]
    assert [line for line in lines if re.match(rf"<30>monkey\[{server.pid}\]: monkey \S+ serves with", line)]
    assert not [line for line in lines if "\n" in line]


def test_syslog_receives_severity_of_each_line(monkey, site, syslog):
    site.add("index.html", "hello")
    server = monkey(server="AccessLog syslog\nErrorLog syslog\nLogLevel debug")
    server.config = None
    server.get("/?a")
    server.get("/?b")
    server.stop()
    lines = received(syslog)
    assert {line[:4] for line in lines if f" {version(server)}" in line} == {"<30>"}
    assert len([line for line in lines if f" {version(server)}" in line]) == 2
    assert {line[:4] for line in lines if "workers run as root" in line} == {"<28>"}
    assert {line[:4] for line in lines if " serves with " in line} == {"<30>"}
    assert not [line for line in lines if re.search(r"\[(error|warn|info|debug)\]|\d{4}-\d\d-\d\dT", line)], "twice"


def test_syslog_that_restarts_is_found_again(monkey, site, syslog):
    site.add("index.html", "hello")
    server = monkey(workers=1, server="AccessLog syslog")
    server.get("/?a")
    wait_until(lambda: any("GET /?a " in line for line in received(syslog)), "the first line")
    os.unlink(SYSLOG)
    syslog.close()
    server.get("/?lost")
    time.sleep(1.5)  # the server flushes the line although its log has no reader
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as again:
        again.bind(SYSLOG)
        server.get("/?b")
        wait_until(lambda: any("GET /?b " in line for line in received(again)), "a line after the restart")


@pytest.mark.processes("libmonkey has no error log of its own")
def test_syslog_that_starts_after_the_server_is_found(monkey, site, no_syslog):
    """A booting machine, a container without syslog, and a syslog that is installed later have no socket."""
    site.add("index.html", "hello")
    server = monkey(workers=1, server="AccessLog syslog\nErrorLog syslog")
    assert re.search(r"monkey\.conf:\d+:\d+: warning: no syslog service listens on /dev/log \(No such file or directory\)",
                     server.err.text)
    assert server.err.text.count("no syslog service") == 1, "two keys, one log"
    server.get("/?lost")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as syslog:
        syslog.bind(SYSLOG)
        try:
            lines = []

            def arrive():
                server.get("/?later")
                lines.extend(received(syslog))
                return any("GET /?later " in line for line in lines)

            wait_until(arrive, "a line")
            server.tell(signal.SIGHUP)
            wait_until(lambda: lines.extend(received(syslog)) or any("the new configuration" in line for line in lines),
                       "a line of the master")
            server.stop()
        finally:
            os.unlink(SYSLOG)
    # On a busy machine, the server may write the line only after syslog has started.
    assert [line for line in lines if "GET /?lost " in line or re.fullmatch(
        r"<27>monkey\[\d+\]: \d+ lines of this log were lost: no syslog service listens on /dev/log", line)], lines


def test_syslog_that_is_absent_is_a_warning(run, tmp_path, site, no_syslog):
    (tmp_path / "c").write_text("[SERVER]\n    AccessLog syslog\n[HOST]\n    DocumentRoot site\n")
    done = run("-t", "-c", "c")
    assert done.code == 0 and re.search(r"c:2:\d+: warning: no syslog service listens on /dev/log", done.err)


# The systemd journal

# systemd starts a service like this: the environment identifies the stream.
UNDER_JOURNAL = ("sh", "-c", 'JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2) exec "$@"', "sh")
PLAIN = re.compile(r"(<[3467]>(?!.*\[(error|warn|info|debug)\])(?!\d{4}-\d\d-\d\dT).*\n)+")


@pytest.mark.processes("libmonkey writes where its program says")
def test_journal_receives_priorities(monkey, site):
    server = monkey(wrapper=UNDER_JOURNAL, server="AccessLog stderr\nLogLevel debug", sections="[ERROR_PAGES]\n    404 none.html\n")
    server.get("/?<0>x", "GET", [("User-Agent", "<0>")])
    server.stop()
    assert PLAIN.fullmatch(server.err.text), server.err.text
    for pattern in (r"^<4>\S+/monkey\.conf:\d+:\d+: warning: ", r"^<4> +404 none\.html$", r"^<6>monkey \S+ serves with ",
                    r'^<6>127\.0\.0\.1 - - .*"GET /\?<0>x '):
        assert re.search(pattern, server.err.text, re.MULTILINE), (pattern, server.err.text)


def test_journal_receives_priority_of_failed_start(run, tmp_path, site):
    (tmp_path / "c").write_text("[SERVER]\n    Workrs 2\n    PidFile /no/such/pid\n[HOST]\n    DocumentRoot site\n")
    for args in (("-t", "-c", "c"), ("-c", "c")):
        done = run(*args, wrapper=UNDER_JOURNAL)
        assert done.code == 3 and re.match(r"<3>\S+c:2:5: error: unknown key `Workrs`", done.err) and PLAIN.fullmatch(done.err)
    (tmp_path / "c").write_text("[SERVER]\n    Listen 127.0.0.1:0\n    PidFile /no/such/pid\n[HOST]\n    DocumentRoot site\n")
    done = run("-c", "c", wrapper=UNDER_JOURNAL)
    assert done.code == 1 and re.search(r"^<3>monkey: cannot lock the pid file /no/such/pid: ", done.err, re.MULTILINE)


@pytest.mark.processes("libmonkey writes where its program says")
def test_journal_prefix_is_omitted_for_other_streams(monkey, site):
    """A program may inherit the environment variable while its streams lead elsewhere."""
    server = monkey(environment={"JOURNAL_STREAM": "1:2"})
    server.stop()
    assert re.match(r"\d{4}-\d\d-\d\dT\S+ \[info\] \d+: ", server.err.text)
