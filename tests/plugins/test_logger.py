# SPDX-License-Identifier: Apache-2.0
"""The logger plugin: log lines that no client can break, exactly one line for each request, and error logs per host."""
import json
import os
import re
import signal
import time

import pytest

from load import Load
from monkey import PROGRAM, ROOT, write_config
from proc import wait_until
from users import basic, sha1

PROBE = ROOT / "build" / "dev" / "tests" / "plugins" / "monkey-probe.so"
needs_probe = pytest.mark.skipif(not PROBE.exists() or PROGRAM.parent != PROBE.parents[2],
                                 reason="the plugins of the tests are built with the program in build/dev")

# Bytes that a client may put into the target or a header value in order to break a log line
NASTY = [b'"', b"\\", b'\\"', b"\\x22", b"%22%0a%0d", b"\xff\xfe", b"\xc2\x9b31m", b"\xe2\x80\xae", b"\t", b"{}[]", b"a b c",
         b'","status":200', b"%1b[2J", b"<script>", b"$(id)`id`", b"-", b"x" * 3000, b'"' * 3000, b"\xff" * 3000, b"%s%n%%"]


@pytest.fixture
def start(monkey, site):
    """Starts a server with the section [LOGGER] after its host."""
    site.add("index.html", "hello")

    def run(keys="AccessLog access.log", **how):
        section = "[LOGGER]\n" + "".join(f"    {line.strip()}\n" for line in keys.strip().splitlines())
        return monkey(**{"plugins": ["logger"], "sections": section, **how})

    return run


@pytest.fixture
def check(run, tmp_path, site):
    """`check(keys)` returns the exit code of `monkey -t` for a [LOGGER] section with these keys, and its messages."""
    def look(keys, flag="-t", **how):
        done = run(flag, "-c", write_config(tmp_path / "checked.conf", plugins=["logger"], sections=f"[LOGGER]\n{keys}", **how))
        return done.code, done.out + done.err

    return look


def lines_of(server, path="access.log"):
    """Returns the log lines of a stopped server."""
    server.stop()
    data = (server.folder / path).read_bytes()
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", data), "bytes that a terminal would interpret"
    return data.decode().splitlines()


def one_line(server, **how):
    line, = lines_of(server, **how)
    return line


def ask(server, target=b"/", fields=b""):
    with server.connect() as c:
        c.send(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + fields + b"\r\n")
        return c.read()


# Formats

@pytest.mark.parametrize("format", ["combined", "json"])
def test_logger_lines_equal_those_of_server_log(start, site, format):
    """The server's log and the plugin's log contain the same lines for the same requests."""
    server = start(server=f"AccessLog own.log\nAccessLogFormat {format}", host="ServerName mine.example", sections=f"""
        [LOGGER]
            AccessLog plugin.log
            Format {format}
        [HOST]
            ServerName other.example
            DocumentRoot site
    """)
    requests = [(nasty, b"Referer: " + nasty + b"\r\nUser-Agent: " + nasty + b"\r\n") for nasty in NASTY] + [(b"", b"")]
    for host in (b"mine.example", b"other.example"):
        for target, fields in requests:
            with server.connect() as c:
                c.send(b"GET /" + target + b" HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n" + fields + b"\r\n").read()

    def plain(path):
        for line in lines_of(server, path):
            if not re.search(r'" 400 |"status":400', line):  # not valid HTTP: the default host logs the request
                yield re.sub(r'(?<=[:T])\d\d:\d\d:\d\d|"ms":\d+', "", line).replace("other.example", "mine.example")

    mine, others = list(plain("plugin.log")), list(plain("own.log"))
    assert len(mine) > 10 and mine == others


def test_logger_combined_and_common_formats(start):
    server = start("AccessLog access.log")
    server.get("/?q", fields=[("Referer", "http://a/"), ("User-Agent", "me/1.0 (x)")])
    stamp = r"\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000\]"
    assert re.fullmatch(rf'127\.0\.0\.1 - - {stamp} "GET /\?q HTTP/1\.1" 200 5 "http://a/" "me/1\.0 \(x\)"', one_line(server))
    server = start("AccessLog common.log\nFormat common")
    server.get("/", "HEAD")
    assert re.fullmatch(rf'127\.0\.0\.1 - - {stamp} "HEAD / HTTP/1\.1" 200 -', one_line(server, path="common.log"))


def test_logger_supports_every_format_variable(start, site):
    site.add("a b/x.txt", "hello")
    server = start('AccessLog access.log\nFormat "%a" "%h" "%A" %p %{local}p %{remote}p %l %u %m "%U" "%{raw}U" %q %H %S %V %v %R '
                   '%{X-Field}i "%{X-Field}i" %{content-type}o %{X-None}o %s %>s %b %B %D %T %{s}T %{ms}T %{us}T %X %P %W %%',
                   host="ServerName mine.example")
    with server.connect() as c:
        port = c.sock.getsockname()[1]
        c.get("/a%20b/x.txt?q=1", fields=[("X-Field", 'a "b" c')], host="Mine.Example:80")
        worker, = server.workers
    line = one_line(server)
    times = re.search(r" 200 200 5 5 (\d+) 0 0 (\d+) (\d+) ok ", line)
    assert times, line
    micro, milli, again = map(int, times.groups())
    assert 0 < micro <= again < 60_000_000 and milli == again // 1000 or milli == micro // 1000
    p = server.port
    expected = (f'"127.0.0.1" "127.0.0.1" "127.0.0.1" {p} {p} {port} - - GET "/a b/x.txt" "/a%20b/x.txt?q=1" ?q=1 HTTP/1.1 http '
                r'Mine.Example mine.example /* a\x20\x22b\x22\x20c "a \x22b\x22 c" text/plain;\x20charset=utf-8 - 200 200 5 5 '
                f'{micro} 0 0 {milli} {again} ok {worker} 0 %')
    assert line.replace("mine.example mine", "Mine.Example mine") == expected


def test_logger_supports_every_time_format(start):
    before = int(time.time())
    server = start('AccessLog access.log\nFormat %t|%{clf}t|%{iso}t|%{utc}t|%{day}t|%{time}t|%{sec}t')
    server.get("/")
    brackets, clf, iso, utc, day, of_day, sec = one_line(server).replace(r"\x20", " ").split("|")
    t = time.gmtime(int(sec))
    assert before - 1 <= int(sec) <= time.time() + 1
    assert brackets == f"[{clf}]" and clf == time.strftime("%d/%b/%Y:%H:%M:%S +0000", t)
    assert iso == time.strftime("%Y-%m-%dT%H:%M:%S+0000", t) and utc == time.strftime("%Y-%m-%dT%H:%M:%SZ", t)
    assert day == time.strftime("%Y-%m-%d", t) and of_day == time.strftime("%H:%M:%S", t)


def test_logger_times_use_the_time_zone(start):
    server = start("AccessLog access.log\nFormat %{iso}t %{utc}t", environment={"TZ": "XYZ-3"})
    server.get("/")
    iso, utc = one_line(server).split()
    hours = [int(text[11:13]) for text in (iso, utc)]
    assert iso.endswith("+0300") and (hours[0] - hours[1]) % 24 == 3


@pytest.mark.skipif(not (PROGRAM.parent / "plugins" / "monkey-auth.so").exists(), reason="a build without auth")
@pytest.mark.parametrize("format, known, unknown", [
    ("%u %s", r"a\x20\x22b\x22 200", "- 401"), ('"%u" %s', r'"a \x22b\x22" 200', '"-" 401'),
    ('{"s":%s%{member}u}', '{"s":200,"user":"a \\"b\\""}', '{"s":401}'), ('{"u":"%u"}', '{"u":"a \\"b\\""}', '{"u":""}'),
])
def test_logger_user_variable_needs_correct_password(start, site, tmp_path, format, known, unknown):
    site.add("private/a", "few")
    (tmp_path / "users").write_text(f'a "b":{sha1("secret")}\n')
    server = start(plugins=["logger", "auth"], sections=f"[LOGGER]\n    AccessLog access.log\n    Format {format}\n"
                                                        "[AUTH]\n    Location /private\n    UserFile users\n")
    assert server.get("/private/a", fields=basic('a "b"', "secret")).status == 200
    assert server.get("/private/a").status == 401
    assert lines_of(server) == [known, unknown]


def test_logger_addresses_of_ipv6_and_unix_sockets(start, tmp_path):
    try:
        server = start("AccessLog access.log\nFormat %a %A %p %{remote}p", listen=["[::1]:0", f"unix:{tmp_path}/socket"])
    except AssertionError:
        pytest.skip("no ::1 here")
    server.get("/", listener=0)
    server.get("/", listener=1)
    first, second = lines_of(server)
    assert re.fullmatch(rf"::1 ::1 {server.port} [1-9]\d+", first)
    assert re.fullmatch(r"unix: \S+ 0 0", second)


def test_logger_lines_cannot_be_broken_by_clients(start):
    """An unquoted value is a single word; a quoted value contains no quote."""
    server = start('AccessLog access.log\nFormat begin %U %{raw}U %q %V %{A}i "%U" "%r" "%{A}i" %s end')
    for nasty in NASTY:
        ask(server, b"/" + nasty.replace(b" ", b"%20"), b"A: " + nasty + b"\r\n")
    lines = lines_of(server)
    assert len(lines) == len(NASTY)
    text = r'"(?:[^"\\]|\\x[0-9a-f]{2})*"'
    pattern = re.compile(rf"begin \S+ \S+ \S* \S+ \S+ {text} {text} {text} \d{{3}} end")
    assert [line for line in lines if not pattern.fullmatch(line)] == []
    assert max(map(len, lines)) < 6000


def test_logger_json_cannot_be_broken_by_clients(start):
    server = start('AccessLog access.log\nFormat {"p":"%U","raw":"%{raw}U","q":"%q","v":"%V","a":"%{A}i","o":"%{A}o","l":"\\"%r\\"",'
                   '"s":%s,"b":%b,"u":"%u","t":%{sec}t%{member}u}')
    for nasty in NASTY:
        ask(server, b"/" + nasty.replace(b" ", b"%20") + b"?" + nasty.replace(b" ", b""))
        ask(server, b"/none", b"A: " + nasty + b"\r\n")
    records = [json.loads(line) for line in lines_of(server)]
    assert len(records) == 2 * len(NASTY)
    good = [record for record in records if record["s"] == 404]
    assert good and all(record["l"].startswith('"') and record["l"].endswith('"') for record in good)
    by_field = {record["a"] for record in records}
    assert {'"', "\\", '\\"', "-", "a b c", "\x9b31m", "<script>"} <= by_field
    assert {type(record["t"]) for record in records} == {int} and {record["o"] for record in records} == {""}


def test_logger_tab_separated_values_may_contain_blanks(start):
    server = start("AccessLog access.log\nFormat %m\t%{User-Agent}i\t%s")
    server.get("/", fields=[("User-Agent", "me 1.0\t(x)")])
    server.stop()
    assert (server.folder / "access.log").read_text() == "GET\tme 1.0\\x09(x)\t200\n"


def test_logger_records_invalid_requests(start):
    server = start('AccessLog access.log\nFormat %a %m %{A}i "%r" %U%q %H %V %R %s %{X}o %X')
    server.send(b"nonsense\r\n\r\n")
    with server.connect() as c:
        c.send(b"GET / HT")
    wait_until(lambda: server.get("/").status == 200, "a response")
    wait_until(lambda: b" 499 " in (server.folder / "access.log").read_bytes(), "the line")
    lines = lines_of(server)
    assert '127.0.0.1 - - "-" - - - - 400 - rejected' in lines
    assert '127.0.0.1 - - "-" - - - - 499 - client_aborted' in lines and len(lines) == 3


# Selection of requests

def test_logger_except_and_only_select_requests(start, site):
    site.add("style.css", "x")
    server = start("AccessLog access.log\nFormat %U %s\nExcept /health *.css\nExcept 403 3xx")
    for target in ("/", "/health", "/health/x", "/style.css", "/none"):
        server.get(target)
    server.get("/", fields=[("If-None-Match", "*")])
    assert lines_of(server) == ["/ 200", "/health/x 404", "/none 404"]
    server = start("AccessLog only.log\nFormat %U %s\nOnly /a/* 4xx\nExcept /a/b")
    for target in ("/", "/a/", "/a/b", "/none"):
        server.get(target)
    server.send(b"nonsense\r\n\r\n")
    assert lines_of(server, "only.log") == ["/a/ 404", "/none 404", "- 400"]


def test_logger_request_without_response_is_499(start):
    server = start("AccessLog access.log\nFormat %s\nOnly 499")
    server.get("/")
    with server.connect() as c:
        c.send(b"GET / HT")
    wait_until((server.folder / "access.log").read_bytes, "the line")
    assert lines_of(server) == ["499"]


# Hosts

def test_logger_hosts_have_separate_logs(start, tmp_path):
    """The section above all hosts applies to hosts without a section of their own; the server's own log gets the requests that no
    plugin logs."""
    server = start(server="AccessLog own.log", host="ServerName one.example", top="[LOGGER]\n    AccessLog all.log\n    Format %V\n",
                   sections="""
        [HOST]
            ServerName two.example
            DocumentRoot site
        [LOGGER]
            AccessLog two.log
            Format two %V
        [HOST]
            ServerName off.example
            DocumentRoot site
        [LOGGER]
            AccessLog off
        [HOST]
            ServerName errors.example
            DocumentRoot site
        [LOGGER]
            ErrorLog errors.log
    """)
    for name in ("one", "two", "off", "errors", "one"):
        server.get("/", host=f"{name}.example")
    assert lines_of(server, "all.log") == ["one.example"] * 2
    assert lines_of(server, "two.log") == ["two two.example"]
    assert len(lines_of(server, "own.log")) == 1 and (tmp_path / "errors.log").read_text() == ""


def test_logger_hosts_may_share_a_log(start, tmp_path):
    server = start(f"AccessLog {tmp_path}/access.log\nFormat %V", host="ServerName one.example")
    server.stop()
    server = start(host="ServerName one.example", sections=f"""
        [LOGGER]
            AccessLog {tmp_path}/shared.log
            Format %V
        [HOST]
            ServerName two.example
            DocumentRoot site
        [LOGGER]
            AccessLog shared.log
            Format 2 %V
    """)
    for name in ("one", "two"):
        server.get("/", host=f"{name}.example")
    assert lines_of(server, "shared.log") == ["one.example", "2 two.example"]


def test_logger_without_section_does_nothing(start, monkey):
    server = monkey(plugins=["logger"], server="AccessLog own.log")
    server.get("/")
    assert len(lines_of(server, "own.log")) == 1


def test_logger_writes_to_standard_output(start):
    server = start("AccessLog stdout\nFormat out %U")
    server.get("/")
    server.stop()
    assert server.out.text.endswith("\nout /\n")


# Error logs

@needs_probe
def test_logger_error_log_of_host_gets_its_messages(start, site):
    server = start(plugins=["logger", PROBE], host="ServerName one.example", sections="""
        [PROBE]
            Name one
        [LOGGER]
            ErrorLog one.err
        [ROUTES]
            /* probe-log
        [HOST]
            ServerName two.example
            DocumentRoot site
        [PROBE]
            Name two
        [LOGGER]
            AccessLog off
        [ROUTES]
            /* probe-log
        [HOST]
            ServerName three.example
            DocumentRoot site
        [PROBE]
            Name three
        [LOGGER]
            ErrorLog three.err
            LogLevel error
        [ROUTES]
            /* probe-log
        """)
    for name in ("one", "two", "three"):
        assert server.get(f"/{'x' * 400}?said-{name}-%1b\"", host=f"{name}.example").text == "logged\n"
    line = one_line(server, path="one.err")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+0000 \[warn\] \d+: GET /x{255} from 127\.0\.0\.1: said-one-%1b\"", line), line
    assert ": said-two-" in server.err.text  # a host without an ErrorLog uses the server's log
    assert "said-one" not in server.err.text and "said-three" not in server.err.text
    assert (server.folder / "three.err").read_text() == ""


# No lost lines

def files_of(server, name="access.log"):
    return sorted(path for path in server.folder.iterdir() if path.name == name or path.name.startswith(name + "."))


def count_lines(server, name="access.log"):
    text = b"".join(path.read_bytes() for path in files_of(server, name))
    assert text.endswith(b"\n") or not text
    return text.count(b"\n")


def test_logger_reloads_under_load_lose_no_line(start):
    server = start(workers=2)
    with Load(server) as load:
        for i in range(3):
            server.tell(signal.SIGHUP)
            server.err.wait_for("the new configuration serves", count=i + 1)
            load.more(20)
        load.check()
    server.stop()
    assert count_lines(server) == sum(load.counts)


def test_logger_rotations_by_name_under_load_lose_no_line(start, tmp_path):
    server = start(workers=2)
    with Load(server) as load:
        for i in range(3):
            os.rename(tmp_path / "access.log", tmp_path / f"access.log.{i}")
            server.tell(signal.SIGUSR1)
            wait_until((tmp_path / "access.log").exists, "a new log")
            load.more(20)
        load.check()
    server.stop()
    assert len(files_of(server)) == 4 and count_lines(server) == sum(load.counts)


def test_logger_rotations_by_size_under_load_lose_no_line(start, tmp_path):
    server = start("AccessLog access.log\nMaxSize 4K\nKeep 1000", workers=2)
    with Load(server, "/?" + "x" * 700) as load:
        wait_until((tmp_path / "access.log.3").exists, "three rotations")
        load.check()
    server.stop()
    assert count_lines(server) == sum(load.counts)
    assert all(path.stat().st_size >= 4096 for path in files_of(server) if path.name != "access.log")


def test_logger_keep_limits_rotated_files(start, tmp_path):
    server = start("AccessLog access.log\nMaxSize 4K\nKeep 2")
    first = []

    def rotated():
        for _ in range(8):
            server.get("/?" + "x" * 700)
        if (tmp_path / "access.log.2").exists():
            first.append((tmp_path / "access.log.2").stat().st_ino)
        return len(set(first)) >= 2

    wait_until(rotated, "removal of the second file", 50)
    server.stop()
    assert [path.name for path in files_of(server)] == ["access.log", "access.log.1", "access.log.2"]


def test_logger_crash_of_worker_loses_only_its_buffered_lines(start, tmp_path):
    server = start("AccessLog access.log\nFormat %U")
    server.allow("was killed by signal")
    for i in range(20):
        server.get(f"/{i}")
    wait_until(lambda: count_lines(server) == 20, "all lines")
    os.kill(server.workers[0], signal.SIGKILL)
    server.err.wait_for("was killed by signal 9")
    wait_until(lambda: answers(server), "another worker")
    server.stop()
    lines = (tmp_path / "access.log").read_text().splitlines()
    assert lines[:20] == [f"/{i}" for i in range(20)] and lines[20:] == ["/after"] * (len(lines) - 20)


def answers(server):
    try:
        return server.get("/after").status == 404
    except (AssertionError, OSError):
        return False


def test_logger_full_disk_is_reported_and_blocks_nothing(start):
    server = start("AccessLog /dev/full")
    for _ in range(50):
        assert server.get("/").text == "hello"
    server.err.wait_for(r"\[error\] \d+: \d+ lines of the log /dev/full were lost: No space left on device")
    server.stop()
    assert sum(map(int, re.findall(r"(\d+) lines of the log /dev/full were lost", server.err.text))) == 50


def test_logger_lines_may_be_very_long(start):
    verbs = " ".join(f"%{{A{i}}}i" for i in range(20))
    server = start(f"AccessLog access.log\nFormat {verbs}", server="MaxHeaderSize 60K")
    server.get("/", fields=[(f"A{i}", '"' * 2900) for i in range(20)])
    line = one_line(server)
    assert len(line) > 15000 and all(word == r"\x22" * (len(word) // 4) for word in line.split()) and len(line.split()) == 20


# Configuration

@pytest.mark.parametrize("keys, location, message", [
    ("    AccessLog a\n    Format %h %Y\n", "14:15", "`%Y` is not a verb"),
    ("    AccessLog a\n    Format %h %{nonsense}t\n", "14:15", "`%{nonsense}t` is not a form of this verb"),
    ("    AccessLog a\n    Format %h %{a b}i\n", "14:15", "`%{a b}i` does not name a header"),
    ("    AccessLog a\n    Format %h %i\n", "14:15", "`%i` is not a form of this verb"),
    ("    AccessLog a\n    Format %h %{x\n", "14:15", "`%{x` has no `}`"),
    ("    AccessLog a\n    Format %h %\n", "14:15", "a verb is not complete: `%` has no letter"),
    ("    AccessLog a\n    Format %h %{x}\n", "14:15", "a verb is not complete: `%{x}` has no letter"),
    ("    AccessLog a\n    Format %h \"%r\n", "14:12", "a quote of the format is not closed"),
    ("    AccessLog a\n    Format {\"a\":%U}\n", "14:17", "`%U` is text: in JSON it needs quotes"),
    ("    AccessLog a\n    Format {\"a\":\"%U\"\n", "14:12", "a format that begins with `{` is JSON, and ends with `}`"),
    ("    AccessLog a\n    Format {\"a\":\"%U\\\"}\n", "14:12", "a quote of the format is not closed"),
    ("    AccessLog a\n    Format \"%h \\\"%r\\\"\"\n", "14:12", "do not put quotes around a format"),
    ("    AccessLog a\n    Format combinde\n", "14:12", "combined, common, json, detailed or a string with verbs"),
    ("    AccessLog a\n    Format " + "%{A}i " * 30 + "\n", "14:12", "its lines could have"),
    ("    AccessLog a\n    Except health\n", "14:12", "`health` is neither a path nor a status"),
    ("    AccessLog a\n    Only 404 700\n", "14:14", "`700` is neither a path nor a status"),
    ("    AccessLog a\n    Only 9xx\n", "14:10", "`9xx` is neither a path nor a status"),
    ("    AccessLog a\n    MaxSize 10\n", "14:13", "too small"),
    ("    AccessLog a\n    Keep many\n", "14:10", "expected a number"),
    ("    AccessLog a\n    LogLevel loud\n", "14:14", "loud"),
    ("    AccessLog /no/such/log\n", "13:15", "cannot open the log `/no/such/log`: No such file"),
    ("    ErrorLog /no/such/log\n", "13:14", "cannot open the log `/no/such/log`: No such file"),
    ("    AcessLog a\n", "13:5", "unknown key `AcessLog` in [LOGGER]"),
])
def test_logger_invalid_configuration_is_rejected_with_location(check, keys, location, message):
    code, text = check(keys)
    assert code == 3 and re.search(rf"checked\.conf:{location}: error: .*{re.escape(message)}", text), text


def test_logger_error_above_all_hosts_is_reported_once(check):
    hosts = "".join(f"[HOST]\n    ServerName {name}\n    DocumentRoot site\n" for name in "bcd")
    code, text = check(f"    AccessLog ok.log\n{hosts}", top="[LOGGER]\n    AccessLog /no/such/log\n")
    assert code == 3 and text.count("cannot open the log `/no/such/log`") == 1, text


def test_logger_accepts_keys_of_monkey_1(check):
    code, text = check("    AccessLog access.log\n    ErrorLog error.log\n    FlushTimeout 3\n    MasterLog /var/log/monkey/master.log\n")
    assert code == 0, text
    assert "warning: `FlushTimeout` no longer has an effect" in text and "warning: `MasterLog` no longer has an effect" in text


def test_logger_printed_config_loads_again(check, run, tmp_path):
    keys = '    AccessLog access.log\n    Format %h "%r" %s\n    Except /health 3xx\n    Only /a/*\n    MaxSize 1M\n    ErrorLog syslog\n'
    if not os.path.exists("/dev/log"):
        keys = keys.replace("syslog", "off")
    code, printed = check(keys, "-T")
    assert code == 0
    for line in (rf"AccessLog +{tmp_path}/access\.log", r'Format +%h "%r" %s', "Except +/health", "Except +3xx", r"Only +/a/\*", "MaxSize +1M"):
        assert re.search(rf"^    {line}$", printed, re.MULTILINE), (line, printed)
    again = tmp_path / "elsewhere"
    again.mkdir()
    (again / "again.conf").write_text(printed)
    assert run("-T", "-c", again / "again.conf").out == printed


def test_logger_shipped_config_loads(start, tmp_path):
    shipped = ROOT / "plugins" / "logger" / "logger.conf"
    server = start(sections="", top=f"@INCLUDE {shipped}\n")
    assert server.get("/").text == "hello"
    server.stop()
