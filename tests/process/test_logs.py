# SPDX-License-Identifier: Apache-2.0
"""One record for each request, whatever became of it; lines that no client can break; a full disk stops nothing."""
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
    """The lines of the log of a server that has ended."""
    server.stop()
    data = (server.folder / path).read_bytes()
    assert not re.search(rb"[^\x20-\x7e\n]", data), "bytes that a terminal may obey"
    return data.decode().splitlines(keepends=True)


def version(server):
    return "HTTP/2.0" if server.is_h2 else "HTTP/1.1"


def combined(line):
    match = COMBINED.fullmatch(line)
    assert match, line
    return match


# What a client may send to break a line, raw, as target and as value of a field

NASTY = [b'"', b"\\", b'\\"', b"\\x22", b"%22%0a%0d", b"\xff\xfe", b"\xc2\x9b31m", b"\xe2\x80\xae", b"' OR 1=1", b"\t", b"{}[]",
         b'","status":200', b"%1b[2J", b"<script>", b"$(id)`id`", b"-", b"x" * 3000, b'"' * 3000, b"\xff" * 3000]


def ask(server, target=b"/", fields=b""):
    with server.connect() as c:
        c.send(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + fields + b"\r\n")
        return c.read()


# Formats

def test_combined(start):
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
def test_json(start):
    server = start("json")
    server.get("/?q", fields=[("Referer", "http://a/"), ("User-Agent", 'a "b" \\ ü')])
    ask(server, b"/none")
    first, second = map(json.loads, lines_of_json(server))
    assert first["status"] == 200 and first["bytes"] == 5 and first["end"] == "done" and first["ms"] >= 0
    assert first["referer"] == "http://a/" and first["agent"].startswith('a "b" \\ ')
    assert second["status"] == 404
    assert "/?q" in first.values() and "GET" in first.values() and "127.0.0.1" in first.values()


def lines_of_json(server):
    server.stop()
    data = (server.folder / "access.log").read_bytes()
    text = data.decode("utf-8")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text), "characters that a terminal may obey"
    return text.splitlines()


@pytest.mark.http1
def test_short(start):
    server = start("short")
    ask(server, b"/?q")
    match = SHORT.fullmatch(lines_of(server)[0])
    assert match and (match["status"], match["request"], match["bytes"]) == ("200", "GET /?q", "5")


@pytest.mark.http1
@pytest.mark.parametrize("format", ["combined", "json", "short"])
def test_nothing_that_a_client_sends_breaks_a_line(start, format):
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
def test_values_can_be_read_back(start):
    """What is escaped is escaped in one way: \\xHH."""
    server = start()
    value = b'a"b\\c\xff'
    ask(server, fields=b"User-Agent: " + value + b"\r\n")
    agent = combined(lines_of(server)[0])["agent"]
    assert re.sub(r"\\x(..)", lambda m: chr(int(m[1], 16)), agent).encode("latin-1") == value


def test_peers_are_named_as_they_are(start, tmp_path):
    try:
        server = start(listen=["127.0.0.1:0", "[::1]:0", f"unix:{tmp_path}/socket"])
    except AssertionError:
        pytest.skip("no ::1 here")
    for i in range(3):
        server.get("/", which=i)
    assert [combined(line)["peer"] for line in lines_of(server)] == ["127.0.0.1", "::1", "unix:"]


# One record for each request

@pytest.mark.http1
def test_requests_that_died_in_their_head_are_there(start):
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
    assert {record["end"] for record in records} == {"refused", "timeout", "done"}
    assert records[6]["end"] == "timeout" and records[0]["end"] == "refused"


@pytest.mark.http1
def test_clients_that_went_away_are_there(start, site):
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
    wait_until(lambda: not server.workers or connections(server) == 0, "the end of them all")
    records = [json.loads(line) for line in lines_of_json(server)]
    ends = sorted((record["end"], record["status"]) for record in records)
    assert ends == [("done", 200), ("gone", 0), ("gone", 200)], records
    gone = next(record for record in records if record["end"] == "gone" and record["status"] == 200)
    assert 0 < gone["bytes"] < 32 << 20


def connections(server):
    return sum(path.startswith("socket:") for path in descriptors(server.workers[0]).values()) - 2


def test_a_request_that_the_end_cuts_off_is_logged(start, site):
    site.add("big", bytes(32 << 20))
    server = start("json", "MinRate off")
    with server.connect(receive_buffer=4096) as c:
        c.ask("/big")
        c.begin()
        record = json.loads(lines_of_json(server)[0])
    assert record["end"] == "shutdown" and record["status"] == 200


def test_a_file_that_shrinks_is_an_answer_that_was_not_whole(start, site):
    path = site.add("big", bytes(32 << 20))
    server = start("json", "MinRate off")
    with server.connect(receive_buffer=4096) as c:
        c.ask("/big")
        c.begin()
        os.truncate(path, 1 << 20)
        with pytest.raises((Closed, ConnectionError)):
            c.read()
    wait_until(lambda: connections(server) == 0, "its end")
    record = json.loads(lines_of_json(server)[0])
    assert record["end"] == "aborted" and record["bytes"] < 32 << 20


def test_as_many_records_as_answers_under_load(start):
    server = start(workers=2)
    with Load(server) as load:
        load.more(100).check()
    lines = lines_of(server)
    assert len(lines) == sum(load.counts)
    assert {combined(line)["status"] for line in lines} == {"200"}


@pytest.mark.http1
def test_pipelines_have_a_record_each(start):
    server = start()
    with server.connect() as c:
        for i in range(100):
            c.send(f"GET /?{i} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        for _ in range(100):
            c.read()
    assert [combined(line)["request"] for line in lines_of(server)] == [f"GET /?{i} HTTP/1.1" for i in range(100)]


def test_lines_are_written_within_a_second_or_so(start, tmp_path):
    server = start()
    server.get("/")
    wait_until(lambda: (tmp_path / "access.log").stat().st_size, "a line, without anything else that happens", 20)


# Places

def test_hosts_have_logs_of_their_own(start, site, tmp_path):
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


def test_several_hosts_may_share_a_log(start, tmp_path):
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


def test_standard_output(monkey, site):
    site.add("index.html", "hello")
    server = monkey(server="AccessLog stdout")
    server.get("/?out")
    server.stop()
    assert COMBINED.fullmatch(server.out.text.splitlines(keepends=True)[-1])["request"] == f"GET /?out {version(server)}"


def test_a_log_is_continued(start, tmp_path):
    (tmp_path / "access.log").write_text("before\n")
    server = start()
    server.get("/")
    assert lines_of(server)[0] == "before\n"


def test_other_users_cannot_read_a_log(start, tmp_path):
    server = start(server="ErrorLog error.log")
    server.get("/")
    server.stop()
    for name in ("access.log", "error.log"):
        assert (tmp_path / name).stat().st_mode & 0o007 == 0, name


def test_a_pipe_without_a_reader_is_no_log(run, tmp_path, site):
    """No reader waits for one."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "c").write_text("[SERVER]\n    AccessLog pipe\n[HOST]\n    DocumentRoot site\n")
    done = run("-t", "-c", "c")
    assert done.code == 3 and "cannot open the log" in done.err and "No such device or address" in done.err


def test_a_pipe_that_is_full_stops_nothing(start, tmp_path):
    os.mkfifo(tmp_path / "access.log")
    reader = os.open(tmp_path / "access.log", os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    server = start()
    with server.connect() as c:
        for _ in range(500):
            assert c.get("/?" + "x" * 700).text == "hello"
    server.err.wait_for(r"\[error\] \d+: \d+ lines of the log \S+ were lost: its reader is too slow")
    os.close(reader)


def test_a_log_may_be_a_pipe_whose_reader_goes(start, site, tmp_path):
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


def test_a_full_disk_stops_nothing(monkey, site):
    site.add("index.html", "hello")
    server = monkey(server="AccessLog /dev/full")
    for _ in range(50):
        assert server.get("/").text == "hello"
    match = server.err.wait_for(r"\[error\] \d+: (\d+) lines of the log /dev/full were lost: No space left on device")
    server.stop()
    lost = re.findall(r"(\d+) lines of the log /dev/full were lost", server.err.text)
    assert sum(map(int, lost)) == 50 and match


def test_a_full_disk_for_errors_too(monkey, site):
    site.add("index.html", "hello")
    server = monkey(server="AccessLog /dev/full\nErrorLog /dev/full\nLogLevel debug", workers=2)
    server.config = None  # what can be read from there has no end
    with Load(server) as load:
        for number in (signal.SIGHUP, signal.SIGUSR1):
            server.tell(number)
            load.more(5)
        load.check()


# The error log

def test_levels(monkey, site):
    for level, shown in (("error", False), ("warn", False), ("info", True), ("debug", True)):
        server = monkey(server=f"LogLevel {level}")
        server.stop()
        assert ("[info]" in server.err.text) == shown, level


def test_every_line_has_time_level_and_process(monkey, site, tmp_path):
    server = monkey(server="ErrorLog error.log", workers=2)
    server.tell(signal.SIGHUP)
    wait_until(lambda: "the new configuration" in (tmp_path / "error.log").read_text(), "the reload")
    server.stop()
    text = (tmp_path / "error.log").read_text()
    assert re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} \[(error|warn|info|debug)\] \d+: .+\n)+", text), text
    assert server.err.text == "" and f"{server.pid}: " in text


def test_a_missing_error_page_is_reported(monkey, site):
    server = monkey(sections="[ERROR_PAGES]\n    404 none.html\n", server="LogLevel debug")
    assert re.search(r"monkey\.conf:\d+:\d+: warning: there is no `none\.html` beneath the document root", server.err.text)
    assert server.get("/x").status == 404
    server.err.wait_for(r"\[debug\] \d+: cannot open the error page none\.html of \S+: No such file")


# Syslog

SYSLOG = "/dev/log"


@pytest.fixture
def no_syslog():
    """No other process creates one meanwhile."""
    if os.geteuid() != 0:
        pytest.skip(f"only root can make a {SYSLOG}")
    with open("/dev/null") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(SYSLOG):
            pytest.skip("there is a syslog here")
        yield


@pytest.fixture
def syslog(no_syslog):
    """The socket of a syslog of our own."""
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


def test_syslog(monkey, site, syslog):
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


def test_syslog_gets_the_severity_of_each_line(monkey, site, syslog):
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


def test_a_restarted_syslog_is_found(monkey, site, syslog):
    site.add("index.html", "hello")
    server = monkey(workers=1, server="AccessLog syslog")
    server.get("/?a")
    wait_until(lambda: any("GET /?a " in line for line in received(syslog)), "the first line")
    os.unlink(SYSLOG)
    syslog.close()
    server.get("/?lost")
    time.sleep(1.5)  # until the line was written, without a reader
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as again:
        again.bind(SYSLOG)
        server.get("/?b")
        wait_until(lambda: any("GET /?b " in line for line in received(again)), "a line after the new start")


@pytest.mark.processes("libmonkey has no error log of its own")
def test_syslog_that_starts_after_the_server_is_found(monkey, site, no_syslog):
    """A machine that starts, a container without one, a syslog that is installed later."""
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
    assert [line for line in lines if re.fullmatch(
        r"<27>monkey\[\d+\]: \d+ lines of this log were lost: no syslog service listens on /dev/log", line)], lines


def test_a_syslog_that_is_absent_is_a_warning(run, tmp_path, site, no_syslog):
    (tmp_path / "c").write_text("[SERVER]\n    AccessLog syslog\n[HOST]\n    DocumentRoot site\n")
    done = run("-t", "-c", "c")
    assert done.code == 0 and re.search(r"c:2:\d+: warning: no syslog service listens on /dev/log", done.err)


# The journal of systemd

# As systemd starts a service: the environment names the stream.
UNDER_JOURNAL = ("sh", "-c", 'JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2) exec "$@"', "sh")
PLAIN = re.compile(r"(<[3467]>(?!.*\[(error|warn|info|debug)\])(?!\d{4}-\d\d-\d\dT).*\n)+")


@pytest.mark.processes("libmonkey writes where its program says")
def test_the_journal_gets_priorities(monkey, site):
    server = monkey(wrapper=UNDER_JOURNAL, server="AccessLog stderr\nLogLevel debug", sections="[ERROR_PAGES]\n    404 none.html\n")
    server.get("/?<0>x", "GET", [("User-Agent", "<0>")])
    server.stop()
    assert PLAIN.fullmatch(server.err.text), server.err.text
    for pattern in (r"^<4>\S+/monkey\.conf:\d+:\d+: warning: ", r"^<4> +404 none\.html$", r"^<6>monkey \S+ serves with ",
                    r'^<6>127\.0\.0\.1 - - .*"GET /\?<0>x '):
        assert re.search(pattern, server.err.text, re.MULTILINE), (pattern, server.err.text)


def test_the_journal_gets_the_priority_of_a_failed_start(run, tmp_path, site):
    (tmp_path / "c").write_text("[SERVER]\n    Workrs 2\n    PidFile /no/such/pid\n[HOST]\n    DocumentRoot site\n")
    for args in (("-t", "-c", "c"), ("-c", "c")):
        done = run(*args, wrapper=UNDER_JOURNAL)
        assert done.code == 3 and re.match(r"<3>\S+c:2:5: error: unknown key `Workrs`", done.err) and PLAIN.fullmatch(done.err)
    (tmp_path / "c").write_text("[SERVER]\n    Listen 127.0.0.1:0\n    PidFile /no/such/pid\n[HOST]\n    DocumentRoot site\n")
    done = run("-c", "c", wrapper=UNDER_JOURNAL)
    assert done.code == 1 and re.search(r"^<3>monkey: cannot lock the pid file /no/such/pid: ", done.err, re.MULTILINE)


@pytest.mark.processes("libmonkey writes where its program says")
def test_a_stream_that_is_not_the_journal_gets_whole_lines(monkey, site):
    """The environment is inherited by a program whose streams lead elsewhere."""
    server = monkey(environment={"JOURNAL_STREAM": "1:2"})
    server.stop()
    assert re.match(r"\d{4}-\d\d-\d\dT\S+ \[info\] \d+: ", server.err.text)
