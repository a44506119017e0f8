# SPDX-License-Identifier: Apache-2.0
"""What goes wrong is said, and the exit code is not 0."""
import json
import os
import signal
import subprocess
import time

import pytest

from fake_clients import PRINT_WRK

URL = "http://127.0.0.1:1/"


def test_help_and_version(wr):
    assert wr.run("--help").stdout.startswith("usage: wr ")
    assert wr.run("--version").stdout.startswith("wr 2")


@pytest.mark.parametrize("words, said", [
    ([], "the client command is missing"),
    (["-c", "0", "--", "wrk", URL], "-c expects a number from 1"),
    (["--nonsense", "--", "wrk", URL], "there is no such option: --nonsense"),
    (["-l", "5", "--", "wrk", URL], "-l and -s need -c"),
])
def test_wrong_usage(wr, words, said):
    done = wr.run(*words, code=2)
    assert said in done.stderr and "wr --help" in done.stderr and not done.stdout


@pytest.mark.parametrize("words, said", [
    (["--", "curl", URL], "wr supports wrk, "),
    (["--", "wrk", "index.html"], "the command contains no http:// or https:// URL"),
    (["--", "wrk", URL], "nothing listens on port 1 here"),
    (["--", "wrk", "http://example.org/"], "does not name this machine"),
    (["--pid", "4194305", "--", "wrk", URL], "there is no process 4194305"),
    (["--name", "no-such-server", "--", "wrk", URL], 'no process has the name "no-such-server"'),
    (["-c", "5", "--", "wrk", "--connections=3", URL], "write {c} in place of"),
    (["-c", "5", "--", "ab", "-kc", "100", URL], "the command contains -kc, but"),
])
def test_what_cannot_be_found(wr, words, said):
    done = wr.run(*words, code=1)
    assert said in done.stderr and not done.stdout


@pytest.mark.parametrize("words, said", [
    (["--length", "99"], "has 100 bytes, not 99"),
    (["--status", "404"], "has status 200, not 404"),
    (["--sha1", "0" * 40], "has the SHA-1 "),
])
def test_a_wrong_answer_stops_it(wr, serve, words, said):
    server = serve("slow", 0)
    done = wr.run(*words, "--", "wrk", server.url, code=1)
    assert "wrong response: " in done.stderr and said in done.stderr and not done.stdout


def test_an_answer_of_500_is_wrong_unless_meant(wr, serve):
    server = serve("failing")
    assert "has status 500, not 200" in wr.run("--", "ab", "-n", 5, server.url, code=1).stderr
    wr.run("--status", 500, "--length", 2, "--", "ab", "-n", 5, server.url)
    done = wr.run("--unchecked", "--", "ab", "-n", 5, server.url, code=1)
    assert "5 of 5 responses were errors, so the rate includes error responses" in done.stderr
    done = wr.run("--unchecked", "--json", "--", "ab", "-n", 5, server.url)
    assert "5 of 5 responses were errors" in done.stderr
    shot = json.loads(done.stdout)["steps"][0]["shots"][0]
    assert shot["errors"]["status"] == 5
    wr.run("--status", 500, "--", "ab", "-n", 5, server.url)


@pytest.mark.parametrize("folder", ["/nowhere", "/", "/proc/self", __file__, ""])
def test_what_is_no_control_group_is_refused(wr, serve, folder):
    server = serve("slow", 0)
    done = wr.run("--pid", server.pid, "--cgroup", folder, "--", "ab", "-n", 5, server.url, code=1)
    assert f"wr: {folder}: --cgroup expects the folder of a version 2 control group" in done.stderr and not done.stdout


HELLO = ("--length", 11, "--sha1", "2aae6c35c94fcfb415dbe95f408b9ce91ee846ed")


@pytest.mark.parametrize("answer", [
    "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world and more",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6;x=y\r\nhello \r\n5\r\nworld\r\n0\r\nTrailer: a\r\n\r\n",
    "HTTP/1.0 200 OK\r\n\r\nhello world",
    "HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world",
], ids=["length", "chunked", "until-close", "interim"])
def test_content_is_checked_however_it_comes(wr, serve, answer):
    server = serve("saying", answer)
    wr.script("wrk", PRINT_WRK)
    wr.run(*HELLO, "--", "wrk", server.url)


@pytest.mark.parametrize("answer, said", [
    ("", "the connection was closed without a response"),
    ("SSH-2.0-OpenSSH_9.2\r\n", "it does not begin with HTTP/1."),
    ("HTTP/1.1 200 OK\nContent-Length: 11\n\nhello world", "a line of the head does not end with CRLF"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello", "it ended in the middle"),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", "its chunked coding is broken"),
], ids=["nothing", "other", "lf", "early", "chunked"])
def test_what_is_no_answer_is_said_to_be_none(wr, serve, answer, said):
    server = serve("saying", answer)
    wr.script("wrk", PRINT_WRK)
    assert f"cannot check the response to GET {server.url}: {said}; --unchecked" in wr.run("--", "wrk", server.url, code=1).stderr
    wr.run("--unchecked", "--", "wrk", server.url)


def test_what_is_complete_is_written_though_a_later_step_fails(wr, serve):
    server = serve("slow", 0)
    wr.script("ab", "import sys\nif '2' in sys.argv: sys.exit(9)\n"
              "print('Complete requests: 5\\nFailed requests: 0\\nTime taken for tests: 1.0 seconds\\n"
              "Requests per second: 5.0 [#/sec]')")
    done = wr.run("--json", "--steps", "1,2", "--", "ab", "-n", 5, server.url, code=1)
    document = json.loads(done.stdout)
    assert "failed with exit code 9" in done.stderr
    assert document["complete"] is False and [step["concurrency"] for step in document["steps"]] == [1]


def test_the_server_ends_during_the_shot(wr, serve):
    server = serve("dying", 10)
    done = wr.run("-c", 2, "--", "ab", "-n", 1000, server.url, code=1)
    assert f"the server's process {server.pid} (" in done.stderr and "ended during the shot" in done.stderr


def test_the_client_is_not_there(wr, serve):
    server = serve("slow", 0)
    done = subprocess.run([wr.program, "--", "wrk", server.url], env={"PATH": str(wr.path)}, capture_output=True,
                          text=True, check=False, timeout=50)
    assert done.returncode == 1 and 'the client "wrk" is not installed' in done.stderr


@pytest.mark.parametrize("script, said", [
    ("print('good morning')", "cannot read the output of wrk: "),
    ("", "cannot read the output of wrk: "),
    ("import sys; print('no such host', file=sys.stderr); sys.exit(3)", "failed with exit code 3; its output: no such host"),
    ("import os; os.kill(os.getpid(), 9)", "was ended by signal 9"),
])
def test_the_client_fails(wr, serve, script, said):
    server = serve("slow", 0)
    wr.script("wrk", script)
    assert said in wr.run("--", "wrk", server.url, code=1).stderr


def test_a_client_that_reads_its_options_otherwise_is_no_step_of_the_sweep(wr, serve):
    server = serve("slow", 0)
    wr.script("wrk", PRINT_WRK.replace("1 connections", "10 connections"))
    assert "wrk reports 10 connections, not 7" in wr.run("-c", 7, "--", "wrk", server.url, code=1).stderr
    wr.run("-c", 10, "--", "wrk", server.url)
    wr.run("-c", 1, "--", "wrk", "-c", "{c}0", server.url)
    wr.run("--", "wrk", "-c", 7, server.url)


def test_a_client_cannot_command_the_terminal(wr, serve):
    server = serve("slow", 0)
    wr.script("wrk", r"import sys; sys.stderr.write('\33[2J\33]0;x\7 good\r\n day'); sys.exit(3)")
    said = wr.run("--", "wrk", server.url, code=1).stderr
    assert "?[2J?]0;x? good?\n day" in said and not any(ord(c) < 32 and c != "\n" for c in said)


def test_a_server_that_hangs_up_is_an_error_and_no_signal(wr, serve):
    server = serve("hanging-up")
    for _ in range(5):
        assert "cannot check the response" in wr.run("--", "wrk", "-H", "A: " + "x" * 100000, server.url, code=1).stderr


def test_a_client_that_talks_without_end_is_bounded(wr, serve):
    server = serve("slow", 0)
    wr.script("wrk", "import sys\nfor _ in range(200): sys.stdout.write('x' * 65536)\nsys.stdout.write('the end')")
    said = wr.run("--", "wrk", server.url, code=1).stderr
    assert "exceeds a megabyte" in said and "the end" in said and len(said) < 2000


# It has a child, and neither wants to end.
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    with open({path!r}, "w") as file: file.write(str(os.getpid()))
time.sleep(300)
"""


def read_when_there(path):
    until = time.monotonic() + 30
    while not path.exists() or not path.read_text():
        assert time.monotonic() < until
        time.sleep(0.02)
    return int(path.read_text())


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return ") Z" not in file.read()
    except OSError:
        return False


def await_end(pid):
    until = time.monotonic() + 20
    while is_running(pid):
        assert time.monotonic() < until, "the client outlived wr"
        time.sleep(0.02)


def test_a_client_that_takes_too_long_is_ended_with_its_children(wr, serve, tmp_path):
    server = serve("slow", 0)
    wr.script("wrk", STUBBORN.format(path=str(tmp_path / "pid")))
    assert "did not end within 3 seconds" in wr.run("--limit", 3, "--", "wrk", server.url, code=1).stderr
    await_end(read_when_there(tmp_path / "pid"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_wr_ends_the_client(wr, serve, tmp_path, number):
    server = serve("slow", 0)
    wr.script("wrk", STUBBORN.format(path=str(tmp_path / "pid")))
    with subprocess.Popen([wr.program, "--", "wrk", server.url], env=wr.environment(), stderr=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, text=True) as process:
        pid = read_when_there(tmp_path / "pid")
        process.send_signal(number)
        said = process.communicate(timeout=30)[1]
    assert process.returncode == 1 and "interrupted" in said
    await_end(pid)


def test_https_is_checked_with_curl_or_not_at_all(wr, serve):
    server = serve("slow", 0)
    wr.script("wrk", "print('nothing')")
    url = f"https://127.0.0.1:{server.port}/"
    done = subprocess.run([wr.program, "--", "wrk", url], env={"PATH": str(wr.path)}, capture_output=True, text=True,
                          check=False, timeout=50)
    assert done.returncode == 1 and "`curl` is not installed" in done.stderr and "--unchecked" in done.stderr
    done = wr.run("--unchecked", "--", "wrk", url, code=1)
    assert "cannot read the output of wrk" in done.stderr
    wr.script("curl", "import sys; sys.stdout.write('x' * 100000); sys.stderr.write('\\n200')")
    assert "has 100000 bytes, not 1" in wr.run("--length", 1, "--", "wrk", url, code=1).stderr
    wr.script("curl", "import sys; sys.stderr.write('curl: (7) refused\\n\\n000'); sys.exit(7)")
    assert f"cannot check the response to GET {url}: curl: (7) refused" in wr.run("--", "wrk", url, code=1).stderr
