# SPDX-License-Identifier: Apache-2.0
"""Misbehaving scripts: the client gets the right status, the log contains the reason, and other clients are not delayed."""
import os
import re
import signal
import time

import pytest

from cgi_scripts import PLAIN, PYTHON, SH, serve_scripts
from client import Closed
from proc import is_gone, pid_in, wait_until


@pytest.fixture
def serve(monkey, site):
    def start(script, keys="", name="s", **how):
        return serve_scripts(monkey, site, {name: script}, keys, **how)
    return start


def wait_for_death(pid):
    wait_until(lambda: is_gone(pid), f"process {pid} ends")


# Invalid heads

@pytest.mark.parametrize("output,why", [
    ("", "exited with status 0 without any output"),
    ("Content-Type: text/plain", "before its response head was complete"),
    ("Content-Type: text/plain\\n", "before its response head was complete"),
    ("\\n", "no header before the empty line"),
    ("\\r\\nContent-Type: text/plain\\r\\n\\r\\n", "no header before the empty line"),
    ("hello, world\\n\\n", "a line without a colon: `hello, world`"),
    ("<html><body>\\nContent-Type: a/b\\n\\n", "a line without a colon"),
    ("Content Type: a/b\\n\\n", "an invalid field name"),
    (": a/b\\n\\n", "an invalid field name"),
    ("Content-Type : a/b\\n\\n", "an invalid field name"),
    ("X-A: b\\n folded\\n\\n", "a line without a colon"),
    ("X-A: b\\n c: folded\\n\\n", "an invalid field name"),
    ("X-A: b\\000c\\n\\n", "a control character"),
    ("X-A\\000: b\\n\\n", "an invalid field name"),
    ("X-A: b\\rX-B: c\\n\\n", "a control character"),
    ("X-A: \\033[2J\\n\\n", "a control character"),
    ("Status: abc\\n\\n", "a status outside 200 to 599"),
    ("Status: 99\\n\\n", "a status outside 200 to 599"),
    ("Status: 100 Continue\\n\\n", "a status outside 200 to 599"),
    ("Status: 600\\n\\n", "a status outside 200 to 599"),
    ("Status: 2000\\n\\n", "a status outside 200 to 599"),
    ("Status: -200\\n\\n", "a status outside 200 to 599"),
    ("Status:\\n\\n", "a status outside 200 to 599"),
    ("Status: 200\\nStatus: 404\\n\\n", "a second status"),
    ("HTTP/1.1 200 OK\\nStatus: 200\\n\\n", "a second status"),
    ("HTTP/1.1 abc\\n\\n", "an invalid status line"),
    ("HTTP/1.1 101 Switching\\n\\n", "an invalid status line"),
    ("HTTP/\\n\\n", "an invalid status line"),
    ("Location: /a\\nLocation: /b\\n\\n", "a second Location"),
    ("Location:\\n\\n", "an empty Location"),
    ("Content-Type: a/b\\nContent-Type: c/d\\n\\n", "a second Content-Type"),
    ("Content-Length: 1\\nContent-Length: 1\\n\\nx", "a second Content-Length"),
    ("Content-Length: x\\n\\n", "a Content-Length that is not a number"),
    ("Content-Length: -1\\n\\n", "a Content-Length that is not a number"),
    ("Content-Length: 99999999999999999999\\n\\n", "a Content-Length that is not a number"),
    ("Content-Length: 9223372036854775808\\n\\n", "a Content-Length that is not a number"),
    ("Transfer-Encoding: chunked\\n\\n0\\r\\n\\r\\n", "Transfer-Encoding, which only the server may set"),
    ("\\000\\001\\002\\n\\n", "a line without a colon"),
])
def test_cgi_invalid_head_gets_502_with_reason_in_log(serve, output, why):
    server = serve(SH + f"printf '{output}'\n")
    with server.connect() as c:
        for _ in range(2):
            reply = c.get("/cgi-bin/s")
            assert reply.status == 502 and b"hello" not in reply.body
        assert c.get("/page.txt").text == "the page"
    server.err.wait_for(f"/cgi-bin/s: .*{re.escape(why)}", 2)
    assert not re.search(r"[\0-\x09\x0b-\x1f\x7f]", server.err.text)


@pytest.mark.parametrize("output,why", [
    ("", "without any output"), ("HTTP/1.1 200", "before its response head was complete"), ("Content-Type: a/b\\n\\n", "no status line"),
    ("HTTP/1.1 2x0 OK\\n\\n", "no status line"), ("\\n\\n", "no status line"), ("HTTP/1.1 200 \\001\\n\\n", "no status line"),
])
def test_cgi_nph_output_without_http_gets_502(serve, output, why):
    server = serve(SH + f"printf '{output}'\n", name="nph-s")
    with server.connect() as c:
        assert c.get("/cgi-bin/nph-s").status == 502
        assert c.get("/page.txt").text == "the page"
    server.err.wait_for(why)


@pytest.mark.parametrize("name", ["s", "nph-s"])
def test_cgi_endless_first_line_gets_502(serve, name):
    server = serve(PYTHON + "import os\nos.write(1, b'HTTP/1.1 200 ')\nwhile True: os.write(1, b'x' * 4096)\n", "MaxHeaderSize 8K", name)
    assert server.get(f"/cgi-bin/{name}").status == 502
    server.err.wait_for("head exceeds MaxHeaderSize|no status line")


@pytest.mark.parametrize("size,status", [(4000, 200), (5000, 502), (10_000_000, 502)])
def test_cgi_head_size_limit_is_exact(serve, size, status):
    server = serve(PYTHON + f"import sys\nsys.stdout.write('X-A: b\\n' * {size // 7} + '\\n')\n", "MaxHeaderSize 4096")
    assert server.get("/cgi-bin/s").status == status
    if status == 502:
        server.err.wait_for("the response head exceeds MaxHeaderSize")


def test_cgi_head_near_limit_reaches_client(serve):
    server = serve(PYTHON + "import sys\nsys.stdout.write('X-A: ' + 'b' * 55000 + '\\n\\nbody')\n", "MaxHeaderSize 56K")
    with server.connect() as c:
        reply = c.get("/cgi-bin/s")
        assert len(reply["X-A"]) == 55000 and reply.text == "body"


# Crashes

@pytest.mark.parametrize("script,status,why", [
    ("exit 3", 502, "exited with status 3 without any output"),
    ("kill -SEGV $$", 502, r"was killed by signal 11 \(Segmentation fault\) without any output"),
    ("printf 'Content-Ty'; kill -KILL $$", 502, r"was killed by signal 9 \(Killed\) before its response head was complete"),
    ("no-such-program-anywhere", 502, "no-such-program-anywhere"),
])
def test_cgi_script_crash_gets_error_status(serve, script, status, why):
    server = serve(SH + script + "\n")
    assert server.get("/cgi-bin/s").status == status
    server.err.wait_for(why)


def test_cgi_script_crash_in_body_truncates_response(serve):
    server = serve(SH + "printf 'Content-Type: text/plain\\nContent-Length: 100000\\n\\nbegin'; kill -SEGV $$\n")
    with server.connect() as c:
        try:
            assert c.get("/cgi-bin/s").status in (500, 502)
        except (Closed, ConnectionResetError):
            pass
    server.err.wait_for("shorter than its Content-Length")


@pytest.mark.parametrize("text,status,why", [
    ("", 502, "could not be started: .*first line begin"), ("no first line\n", 502, "could not be started: .*first line begin"),
    ("#!/nowhere/sh\n", 502, "could not be started: .*interpreter in its first line"), ("#!\n", 502, "could not be started"),
    ("\x7fELF nothing", 502, "could not be started"), ("#!/etc/passwd\n", 403, "could not be started"),
])
def test_cgi_script_that_cannot_be_executed_gets_error_status(serve, text, status, why):
    server = serve(text)
    assert server.get("/cgi-bin/s").status == status
    server.err.wait_for(f"/cgi-bin/s: {why}")


# Timeouts

def test_cgi_read_timeout_before_head_gets_504_and_kills_script(serve, site):
    server = serve(SH + "echo $$ >pid\nexec sleep 1000\n", "ReadTimeout 1s")
    with server.connect() as c:
        began = time.monotonic()
        assert c.get("/cgi-bin/s").status == 504
        assert 1 <= time.monotonic() - began < 10
        assert c.get("/page.txt").text == "the page"
    wait_for_death(pid_in(site / "cgi-bin/pid"))
    server.err.wait_for("/cgi-bin/s: no response within ReadTimeout")


def test_cgi_read_timeout_applies_to_partial_head(serve):
    server = serve(SH + "printf 'Content-Type: text/plain\\n'; exec sleep 1000\n", "ReadTimeout 1s")
    assert server.get("/cgi-bin/s").status == 504


def test_cgi_read_timeout_in_body_truncates_response(serve, site):
    server = serve(PLAIN + "echo $$ >pid; echo begun; exec sleep 1000\n", "ReadTimeout 1s")
    with server.connect() as c, pytest.raises((Closed, ConnectionResetError)):
        c.ask("/cgi-bin/s")
        assert c.read_head().status == 200
        c.read_to_end()
        raise Closed("at a proper end")
    wait_for_death(pid_in(site / "cgi-bin/pid"))
    server.err.wait_for("response aborted after 6 bytes: ReadTimeout")


def test_cgi_read_timeout_restarts_with_output(serve):
    server = serve(PLAIN + "for i in 1 2 3 4 5 6; do sleep 0.25; echo $i; done\n", "ReadTimeout 1s")
    assert server.get("/cgi-bin/s").text == "1\n2\n3\n4\n5\n6\n"


@pytest.mark.parametrize("script", [SH + "exec sleep 1000\n", PLAIN + "while :; do echo x; sleep 0.05; done\n"])
def test_cgi_max_time_ends_script(serve, script):
    server = serve(script, "MaxRunTime 400ms")
    with server.connect() as c:
        try:
            assert c.get("/cgi-bin/s").status == 504
        except (Closed, ConnectionResetError):
            pass
    server.err.wait_for("MaxRunTime")


def test_cgi_script_that_ignores_sigterm_is_killed(serve, site):
    server = serve(SH + "trap '' TERM\necho $$ >pid\nwhile :; do sleep 0.05; done\n", "ReadTimeout 1s")
    assert server.get("/cgi-bin/s").status == 504
    pid = pid_in(site / "cgi-bin/pid")
    wait_for_death(pid)


def test_cgi_script_gets_sigterm_before_sigkill(serve, site):
    server = serve(SH + "trap 'echo cleaned >trace; exit' TERM\necho $$ >pid\nwhile :; do sleep 0.02; done\n", "ReadTimeout 1s")
    assert server.get("/cgi-bin/s").status == 504
    wait_until((site / "cgi-bin/trace").exists, "the script cleans up")


def test_cgi_stopped_script_is_killed(serve, site):
    server = serve(SH + "echo $$ >pid\nkill -STOP $$\n", "ReadTimeout 1s")
    assert server.get("/cgi-bin/s").status == 504
    wait_for_death(pid_in(site / "cgi-bin/pid"))


def test_cgi_children_of_script_are_killed_with_it(serve, site):
    server = serve(SH + "sleep 1000 & echo $! >pid\nsleep 1000\n", "ReadTimeout 1s")
    assert server.get("/cgi-bin/s").status == 504
    wait_for_death(pid_in(site / "cgi-bin/pid"))


# Early close, late exit

def test_cgi_script_that_closes_stdout_without_output_gets_502(serve):
    server = serve(SH + "exec >&-\nexec sleep 1000\n")
    assert server.get("/cgi-bin/s").status == 502
    server.err.wait_for("closed its output without any output")


def test_cgi_response_ends_when_stdout_is_closed(serve, site):
    server = serve(PLAIN + "echo $$ >pid\necho all\nexec >&- 2>&-\nexec sleep 1000\n")
    with server.connect() as c:
        assert c.get("/cgi-bin/s").text == "all\n"
        assert c.get("/page.txt").text == "the page"
    pid = pid_in(site / "cgi-bin/pid")
    server.stop()  # the script may outlive its request, but not the server
    wait_for_death(pid)


@pytest.mark.parametrize("detach", ["( sleep 1000; echo late ) &", "setsid sleep 1000 &"])
def test_cgi_background_process_does_not_delay_response(serve, site, detach):
    server = serve(PLAIN + f"{detach}\necho $! >pid\necho all\n")
    with server.connect() as c:
        assert c.get("/cgi-bin/s").text == "all\n"
        assert c.get("/page.txt").text == "the page"
    os.kill(pid_in(site / "cgi-bin/pid"), 9)


def test_cgi_daemonised_script_without_output_gets_502(serve, site):
    script = PYTHON + "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n" \
        "open('pid', 'w').write('%d\\n' % os.getpid())\ntime.sleep(1000)\n"
    server = serve(script)
    assert server.get("/cgi-bin/s").status == 502
    os.kill(pid_in(site / "cgi-bin/pid"), 9)


def test_cgi_output_of_orphan_is_not_read(serve, site):
    script = PYTHON + "import os\nos.write(1, b'X-A: b\\n\\nanswer')\nif os.fork(): os._exit(0)\nos.setsid()\n" \
        "open('pid', 'w').write('%d\\n' % os.getpid())\nwhile True: os.write(1, b'flood' * 1000)\n"
    server = serve(script)
    with server.connect() as c:
        reply = c.get("/cgi-bin/s")
        assert reply.text.startswith("answer")
        assert c.get("/page.txt").text == "the page"
    wait_for_death(pid_in(site / "cgi-bin/pid"))  # its pipe no longer has a reader


# Excessive output

def test_cgi_max_output_truncates_response(serve, site):
    server = serve(PYTHON + "import os\nopen('pid', 'w').write('%d\\n' % os.getpid())\nos.write(1, b'X-A: b\\n\\n')\nwhile True: os.write(1, b'x' * 65536)\n",
                   "MaxOutput 1M")
    with server.connect() as c, pytest.raises((Closed, ConnectionResetError)):
        c.get("/cgi-bin/s")
    wait_for_death(pid_in(site / "cgi-bin/pid"))
    server.err.wait_for("the body exceeds MaxOutput")


def test_cgi_max_output_refuses_large_content_length_at_once(serve):
    server = serve(SH + "printf 'Content-Length: 2000000\\n\\n'; exec cat /dev/zero\n", "MaxOutput 1M")
    assert server.get("/cgi-bin/s").status == 502


def test_cgi_max_output_is_exact(serve):
    server = serve(SH + "printf 'X-A: b\\n\\n'; exec head -c 1048576 /dev/zero\n", "MaxOutput 1M")
    assert server.get("/cgi-bin/s").body == bytes(1048576)


@pytest.mark.parametrize("length,status", [(3, 200), (6, 200), (7, None), (1000, None)])
def test_cgi_wrong_content_length_truncates_response(serve, length, status):
    server = serve(SH + f"printf 'Content-Length: {length}\\n\\nsix by'\n")
    with server.connect() as c:
        try:
            reply = c.get("/cgi-bin/s")
            assert reply.status == (status or reply.status) and reply.status in (200, 500, 502)
            assert reply.status != 200 or reply.text == "six by"[:length]
        except (Closed, ConnectionResetError):
            assert status is None
    if not status:
        server.err.wait_for("shorter than its Content-Length")


# Standard error

def test_cgi_stderr_is_logged(serve):
    server = serve(PLAIN + "echo 'first complaint' >&2; printf 'second\\tone: \\033[31m\\001' >&2; printf 'ü\\r\\n\\r\\n\\nno end' >&2; echo fine\n")
    assert server.get("/cgi-bin/s").text == "fine\n"
    server.err.wait_for("no end$")
    # The script writes its last line after its request has ended, so the log names the script instead of the request.
    lines = [re.sub(r"^/\S+/cgi-bin/s: ", "", line.split("cgi: ", 1)[1])
             for line in server.err.text.splitlines() if "cgi: " in line]
    assert lines == ["first complaint", "second?one: ?[31m?ü", "no end"]


def test_cgi_stderr_line_names_its_request(serve):
    server = serve(PLAIN + "echo 'a complaint' >&2\n")
    server.get("/cgi-bin/s?secret")
    line = server.err.wait_for(r"^.*a complaint.*$")[0]
    assert "/cgi-bin/s" in line and "warn" in line


def test_cgi_stderr_line_before_end_names_its_request(serve, site):
    server = serve(PLAIN + "echo $$ >pid; while ! [ -e go ]; do sleep 0.02; done; echo fine; echo 'a complaint' >&2\n")
    with server.connect() as c:
        c.ask("/cgi-bin/s")
        pid = pid_in(site / "cgi-bin/pid")
        assert c.read_head().status == 200
        os.kill(server.workers[0], signal.SIGSTOP)
        try:
            site.add("cgi-bin/go")
            wait_for_death(pid)
        finally:
            os.kill(server.workers[0], signal.SIGCONT)
        assert c.read_until(b"0\r\n\r\n").endswith(b"fine\n\r\n")
    assert "GET /cgi-bin/s from " in server.err.wait_for(r"^.*a complaint$")[0]


def test_cgi_stderr_is_limited(serve):
    script = PYTHON + "import sys\nfor i in range(20000): sys.stderr.write('complaint %d\\n' % i)\nsys.stderr.write('x' * 3000000)\nprint('X-A: b\\n\\nfine')\n"
    server = serve(script, "MaxStderr 2000")
    assert server.get("/cgi-bin/s").text == "fine\n"
    server.err.wait_for("MaxStderr is reached")
    assert sum(len(line) for line in server.err.text.splitlines() if "complaint" in line) < 20_000
    assert "xxx" not in server.err.text


def test_cgi_stderr_line_without_end_is_split(serve):
    server = serve(PYTHON + "import sys\nsys.stderr.write('y' * 5000)\nprint('X-A: b\\n')\n")
    assert server.get("/cgi-bin/s").status == 200
    server.err.wait_for("y{200}", 7)
    assert max(len(line) for line in server.err.text.splitlines()) < 1300


def test_cgi_stderr_can_be_turned_off(serve):
    server = serve(PLAIN + "echo complaint >&2; echo fine\n", "MaxStderr off")
    assert server.get("/cgi-bin/s").text == "fine\n"
    assert "complaint" not in server.err.text


def test_cgi_stderr_flood_does_not_block_other_clients(serve):
    server = serve(PYTHON + "import os\nos.write(1, b'X-A: b\\n\\n')\nwhile True: os.write(2, b'z' * 65536)\n", "MaxRunTime 2s")
    with server.connect() as flooded, server.connect() as other:
        flooded.ask("/cgi-bin/s")
        assert flooded.read_head().status == 200
        for _ in range(200):
            assert other.get("/page.txt").text == "the page"
        flooded.read_to_end()


def test_cgi_stderr_after_response_is_logged(serve, site):
    server = serve(PLAIN + "echo fine; exec >&-\nwhile ! [ -e go ]; do sleep 0.02; done\necho afterwards >&2\n")
    assert server.get("/cgi-bin/s").text == "fine\n"
    site.add("cgi-bin/go")
    server.err.wait_for("GET /cgi-bin/s from .*: cgi: afterwards")


# Resource limits

def test_cgi_max_cpu_kills_script(serve):
    server = serve(SH + "while :; do :; done\n", "MaxCPUTime 1s")
    assert server.get("/cgi-bin/s").status == 502
    server.err.wait_for("was killed by signal (24|9)")


def test_cgi_max_memory_limits_script(serve):
    server = serve(PYTHON + "x = bytearray(300 << 20)\nprint('X-A: b\\n')\n", "MaxMemory 200M")
    assert server.get("/cgi-bin/s").status == 502
    server.err.wait_for("MemoryError")


def test_cgi_max_file_size_limits_script(serve, site):
    server = serve(PLAIN + "head -c 200000 /dev/zero >big\necho end\n", "MaxFileSize 100K")
    assert server.get("/cgi-bin/s").status == 200
    assert (site / "cgi-bin/big").stat().st_size == 100 * 1024


# Hostile requests

def test_cgi_hostile_values_reach_script_unchanged(serve):
    server = serve(PLAIN + "env -0 | tr '\\0' '|'\n")
    with server.connect() as c:
        c.send(b"GET /cgi-bin/s?%00%0a;$(id)`id` HTTP/1.1\r\nHost: a\r\n".replace(b"`", b"'") + b"X-A: () { :; }; echo pwned\r\nX-B: \xff\xfe\ta=b\r\n\r\n")
        reply = c.read("GET")
    assert b"HTTP_X_A=() { :; }; echo pwned|" in reply.body and b"HTTP_X_B=\xff\xfe\ta=b|" in reply.body
    assert b"QUERY_STRING=%00%0a;$(id)'id'|" in reply.body


def test_cgi_many_and_large_headers_reach_script(serve):
    server = serve(PLAIN + "env | wc -c\n", server="MaxHeaderSize 60K\nMaxURISize 50K")
    fields = [(f"X-{i}", "v" * 500) for i in range(80)]
    assert int(server.get("/cgi-bin/s", fields=fields).text) > 40_000
    assert server.get("/cgi-bin/s/" + "i" * 40_000 + "?" + "q" * 9000).status in (200, 431)
    assert server.get("/cgi-bin/s/i").status == 200


def test_cgi_method_may_have_any_token_characters(serve):
    server = serve(PLAIN + "echo \"$REQUEST_METHOD\"\n")
    assert server.get("/cgi-bin/s", "A-B'C|D").text == "A-B'C|D\n"
