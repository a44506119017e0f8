# SPDX-License-Identifier: Apache-2.0
"""`monkey top`, which shows the recording of the plugin recorder, on terminals and without."""
import os
import re
import signal
import struct
import subprocess
import termios
import threading
import time

import pytest

from backend import Backend, response
from monkey import ENVIRONMENT, PROGRAM, SECONDS
from proc import wait_until
from recording import HEADER, OPEN, RECORD, SLOT, packed, recording
from top_terminal import ENTER, LEAVE, Terminal


def run(*options, code=0):
    done = subprocess.run([PROGRAM, "top", *options], capture_output=True, text=True, env=os.environ | ENVIRONMENT | {"TZ": "UTC"}, timeout=SECONDS, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def rows(*options):
    """The cells of the table."""
    return [line.split() for line in run(*options).splitlines()[2:]]


@pytest.fixture
def written(tmp_path):
    """Writes a recording of slots, whose requests began some milliseconds ago."""
    def write(*slots):
        (tmp_path / "recording").write_bytes(recording(*slots))
        return tmp_path / "recording"

    return write


def ago(ms):
    return int(time.time() * 1000) - ms


# ---- Without a terminal ----

def test_batch_page_counts_requests_by_host(written):
    one = [packed(b"/%d" % i, (b"one.example", b"ONE.example")[i % 2], ago(1000), 10_000 + 20_000 * (i % 2), 1 + i, status=200 + 300 * (i % 2)) for i in range(6)]
    two = [packed(b"/%d" % i, b"two.example", ago(1000), 1000, 10 + i) for i in range(3)]
    file = written([*one, *two, packed(b"/old", b"old.example", ago(60_000), 1000, 20)])
    text = run("--once", "--last", "30s", file)
    assert "0.3 requests/s, 0.1 failed/s, 0 in flight" in text.splitlines()[0] and "\033" not in text
    assert rows("--last", "30s", file) == [["0.2", "6", "3", "0", "20.0", "30.0", "0", "one.example"], ["0.1", "3", "0", "0", "1.0", "1.0", "0", "two.example"]]
    assert [row[-1] for row in rows("--last", "1h", "--sort", "name", file)] == ["old.example", "one.example", "two.example"]
    assert [row[-1] for row in rows("--last", "1h", "--sort", "mean", file)] == ["one.example", "old.example", "two.example"]
    assert len(rows("--last", "1h", "-n", "1", file)) == 1


def test_filters_are_those_of_monkey_recorder(written):
    file = written([packed(b"/a", b"one.example", ago(10), 10_000, 1), packed(b"/b", b"two.example", ago(10), 30_000, 2, status=500, client=b"\x0a\0\0\1")])
    for options, host in ((["--host", "one.*"], "one.example"), (["-p", "/b"], "two.example"), (["--status", "5xx"], "two.example"), (["--failed"], "two.example"),
                          (["--client", "10.0.0.0/8"], "two.example"), (["--slower", "20ms"], "two.example")):
        assert [row[-1] for row in rows("--last", "1h", *options, file)] == [host], options


def test_page_of_any_length_is_printed(tmp_path):
    """60,000 clients: more than 4 MB."""
    n, now = 60_000, ago(1000)
    content = bytearray(b"monkey recorder\n" + struct.pack("<5I", 2, RECORD, 1, n, 16)).ljust(HEADER + SLOT, b"\0")
    for i in range(n):
        content += packed(b"/", b"h", now, 1000, 1 + i, client=struct.pack(">I", 0x0a000000 + i))
    (tmp_path / "many").write_bytes(content.ljust(HEADER + -(-(SLOT + (n + 16) * RECORD) // HEADER) * HEADER, b"\0"))
    assert len(run("--once", "--by", "clients", "--last", "1h", tmp_path / "many").splitlines()) == n + 2


@pytest.mark.parametrize("view, names", [("hosts", ["a.example"]), ("clients", ["127.0.0.1"]), ("routes", ["-"]), ("backends", [])])
def test_views_group_requests(written, view, names):
    assert [row[-1] for row in rows("--last", "1h", "--by", view, written([packed(b"/", b"a.example", ago(10))]))] == names


def test_lists_show_slow_failed_and_open_requests(written):
    file = written([packed(b"/fast", began_ms=ago(100), duration_us=1000, serial=1), packed(b"/slow", began_ms=ago(100), duration_us=90_000, serial=2),
                    packed(b"/bad", began_ms=ago(50), serial=3, status=502), packed(b"/lost", began_ms=ago(50), serial=4, state=OPEN)])
    assert [row[5] for row in rows("--last", "1h", "--by", "slow", file)] == ["/slow", "/fast", "/bad"]
    assert [(row[1], row[5]) for row in rows("--last", "1h", "--by", "failed", file)] in ([("502", "/bad"), ("lost", "/lost")], [("lost", "/lost"), ("502", "/bad")])
    assert rows("--by", "open", file) == []


def test_rate_of_a_full_ring_is_that_of_the_time_it_covers(written):
    """16 requests in 100 seconds, which have overwritten earlier ones: 0.16 requests per second, not 16 in an hour."""
    now = ago(0)
    ring = [packed(b"/", b"busy.example", now - 100_000 + 6000 * i, 0, 1 + i) for i in range(16)]
    assert rows("--last", "1h", written(ring))[0][0] in ("0.1", "0.2")
    assert rows("--last", "1h", written(ring[:15]))[0][0] == "0.0", "a ring with space has all requests"


HOSTILE = b"/\x1b[2J\x1b]0;title\x07\x9b31m\xff\xc2\x85\xe2\x80\xae\\\n\r\t\x7f"


@pytest.mark.parametrize("view", ["hosts", "slow", "failed"])
def test_hostile_texts_are_escaped(written, view):
    file = written([packed(HOSTILE, HOSTILE, ago(10), 1000, 1, status=500)])
    text = subprocess.run([PROGRAM, "top", "--last", "1h", "--by", view, file], capture_output=True, env=os.environ | ENVIRONMENT, timeout=SECONDS, check=True).stdout
    assert not re.search(rb"[^\n -~]", text) and b"/\\x1b[2j\\x1b]0;title\\x07\\x9b31m\\xff\\xc2\\x85\\xe2\\x80\\xae\\x5c\\x0a" in text.lower()
    assert len(text.splitlines()) == 3


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_option_prints_usage_of_at_most_120_columns(option):
    text = run(option)
    assert text.startswith("usage: monkey top [OPTION...] [FILE]") and max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("options, error", [(["--by", "colour"], "invalid value of --by: colour"), (["--sort", "x"], "invalid value of --sort"), (["--interval", "1ms"], "invalid value"),
                                            (["--last", "0"], "invalid value of --last"), (["-n", "0"], "invalid value of --limit"), (["--jsonx"], "unknown option: --jsonx"),
                                            (["a", "b"], "more than one FILE")])
def test_wrong_usage_is_reported(options, error):
    assert error in run(*options, code=2)


def test_missing_recording_tells_how_to_record(tmp_path):
    for command in ("top", "recorder"):
        done = subprocess.run([PROGRAM, command, tmp_path / "none"], capture_output=True, text=True, env=os.environ | ENVIRONMENT, timeout=SECONDS, check=False)
        assert done.returncode == 1 and "No such file" in done.stderr and "`Load recorder` in [PLUGINS]" in done.stderr


def test_damaged_and_cut_recordings_are_read_as_far_as_possible(written, tmp_path):
    data = written([packed(b"/", b"a.example", ago(10), serial=1), packed(b"/", b"b.example", ago(10), serial=2)], [packed(b"/", b"c.example", ago(10))]).read_bytes()
    (tmp_path / "cut").write_bytes(data[:4096 + 64 + 512 + 100])
    assert [row[-1] for row in rows("--last", "1h", tmp_path / "cut")] == ["a.example"]
    for at in (16, 24, 4096 + 64, 4096 + 64 + 56, 4096 + 64 + 66):  # format, slots, version, state, length of a text
        (tmp_path / "damaged").write_bytes(data[:at] + b"\xff" * 8 + data[at + 8:])
        done = subprocess.run([PROGRAM, "top", tmp_path / "damaged"], capture_output=True, text=True, env=os.environ | ENVIRONMENT, timeout=SECONDS, check=False)
        assert done.returncode in (0, 1) and "a.example" not in done.stdout
    (tmp_path / "thesis").write_text("my thesis")
    assert "it is not a recording" in run(tmp_path / "thesis", code=1)


def test_running_server_is_shown(monkey, tmp_path, site):
    release = threading.Event()
    site.add("a.txt", "hello")
    with Backend(lambda _: release.wait(SECONDS) and response("late")) as backend:
        server = monkey(plugins=["recorder", "proxy"], top=f"[RECORDER]\n    File {tmp_path}/live\n", sections=f"[ROUTES]\n    /wait proxy http://{backend.address}\n    /* static\n")
        with server.connect() as c:
            c.ask("/wait")
            for _ in range(5):
                assert server.get("/a.txt", host="www.example").status == 200
            (open_request,) = wait_until(lambda: rows("--by", "open", tmp_path / "live"), "the request in flight")
            assert open_request[1] == "open" and open_request[-1].endswith("/wait")
            assert wait_until(lambda: [row for row in rows("--last", "1h", tmp_path / "live") if row[-1] == "www.example" and row[1] == "5"], "the host")
            release.set()
            c.read()
        wait_until(lambda: {row[-1] for row in rows("--last", "1h", "--by", "routes", tmp_path / "live")} == {"/*", "/wait"}, "the routes")
        wait_until(lambda: [row[-1] for row in rows("--last", "1h", "--by", "backends", tmp_path / "live")] == [backend.address], "the backend")


# ---- On a terminal ----

def test_keys_choose_views_and_quit(written):
    file = written([packed(b"/path", b"a.example", ago(10), status=500)])
    with Terminal("--last", "1h", file) as t:
        t.wait_for(b"a.example")
        assert ENTER in t.got and b"[1 hosts]" in t.got
        t.type(b"3")
        t.wait_for(b"[3 clients]")
        assert b"127.0.0.1" in t.got
        t.type(b"\t")
        t.wait_for(b"[4 backends]")
        t.type(b"\033[D\033[D")
        t.wait_for(b"[2 routes]")
        t.type(b"6")
        t.wait_for(b"a.example/path")
        t.type(b"s")
        t.wait_for(b"sort by: requests")
        t.type(b" ")
        t.wait_for(b"[paused]")
        t.type(b"\033[1~zq")
        assert t.wait() == 0
        t.check_restored()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT])
def test_signal_restores_the_terminal(written, number):
    with Terminal(written([packed(b"/", b"a.example", ago(10))])) as t:
        t.wait_for(b"a.example")
        t.process.send_signal(number)
        assert t.wait() == -number
        t.check_restored()


def test_stopped_program_gives_the_terminal_back(written):
    with Terminal(written([packed(b"/", b"a.example", ago(10))])) as t:
        t.wait_for(b"a.example")
        t.process.send_signal(signal.SIGTSTP)
        t.wait_for(LEAVE)
        wait_until(lambda: termios.tcgetattr(t.slave) == t.before, "the modes of the terminal")
        t.got = b""
        t.process.send_signal(signal.SIGCONT)
        t.wait_for(ENTER)
        t.type(b"q")
        assert t.wait() == 0
        t.check_restored()


def test_terminal_that_closes_ends_the_program(written):
    with Terminal(written([packed(b"/", b"a.example", ago(10))])) as t:
        t.wait_for(b"a.example")
        os.close(t.slave)
        os.close(t.master)
        t.slave, t.master = os.open("/dev/null", os.O_RDONLY), os.open("/dev/null", os.O_RDONLY)
        assert t.process.wait(SECONDS) is not None


@pytest.mark.parametrize("columns, lines", [(1, 1), (2, 1), (1, 50), (20, 3), (500, 200), (0, 0)])
def test_any_size_of_the_terminal(written, columns, lines):
    file = written([packed(b"/" + bytes([97 + i]) * 100, b"%d.example" % i, ago(10), serial=1 + i) for i in range(16)])
    with Terminal("--by", "slow", "--interval", "100ms", file, columns=columns, lines=lines) as t:
        wait_until(lambda: t.read().count(b"\033[H") > 2, "pages")
        page = t.got.split(b"\033[H")[1]
        text = [re.sub(rb"\033\[[0-9;?]*[A-Za-z]", b"", line) for line in page.replace(b"\r", b"").split(b"\n")]
        assert len(text) <= (lines or 24) + 1 and max(map(len, text)) <= (columns or 80)
        t.resize(90, 10)
        t.process.send_signal(signal.SIGWINCH)
        t.got = b""
        t.wait_for(b"requests/s")
        t.type(b"q")
        assert t.wait() == 0
        t.check_restored()


def test_hostile_texts_do_not_reach_the_terminal(written):
    with Terminal(written([packed(HOSTILE, HOSTILE, ago(10))])) as t:
        t.wait_for(b"x1b[2j")
        assert not re.search(rb"\033\]|\x9b|\xff|\x07", t.got) and t.got.count(b"\033[2J") == 1, "only the program clears the screen"


def test_colors_are_left_out_on_demand(written):
    with Terminal(written([packed(b"/", b"a.example", ago(10))]), NO_COLOR="1") as t:
        t.wait_for(b"a.example")
        assert b"\033[7m" not in t.got


def test_dumb_terminal_gets_a_plain_page(written):
    with Terminal(written([packed(b"/", b"a.example", ago(10))]), TERM="dumb") as t:
        assert t.wait() == 0 and b"\033" not in t.got and b"a.example" in t.got


def test_file_that_disappears_or_is_cut_is_reported_until_it_returns(written):
    file = written([packed(b"/", b"a.example", ago(10))])
    data = file.read_bytes()
    with Terminal("--interval", "100ms", "--last", "1h", file) as t:
        t.wait_for(b"a.example")
        file.unlink()
        t.wait_for(b"No such file")
        file.write_bytes(data[:10])
        t.wait_for(b"it is not a recording")
        file.write_bytes(data.replace(b"a.example", b"b.example"))
        t.wait_for(b"b.example")
        t.type(b"q")
        assert t.wait() == 0
        t.check_restored()


def test_restart_of_the_server_is_followed(monkey, tmp_path, site):
    site.add("a.txt", "hello")
    how = dict(plugins=["recorder"], top=f"[RECORDER]\n    File {tmp_path}/live\n")
    server = monkey(**how)
    server.get("/a.txt", host="first.example")
    with Terminal("--interval", "100ms", "--last", "1h", tmp_path / "live") as t:
        t.wait_for(b"first.example")
        server.stop()
        again = monkey(**how)
        again.get("/a.txt", host="second.example")
        t.wait_for(b"second.example")
        again.stop()
        larger = monkey(plugins=["recorder"], top=f"[RECORDER]\n    File {tmp_path}/live\n    Requests 100\n")
        larger.get("/a.txt", host="third.example")
        t.wait_for(b"third.example")
        t.type(b"q")
        assert t.wait() == 0
        t.check_restored()
