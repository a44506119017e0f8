# SPDX-License-Identifier: Apache-2.0
"""wr reports errors and exits with a code other than 0."""
import json
import os
import signal
import subprocess
import time

import pytest

from fake_clients import PRINT_WRK

URL = "http://127.0.0.1:1/"


def test_wr_prints_help_and_version(wr):
    assert wr.run("--help").stdout.startswith("usage: wr ")
    assert wr.run("--version").stdout.startswith("wr 2")


@pytest.mark.parametrize("words, message", [
    ([], "the client command is missing"),
    (["-c", "0", "--", "wrk", URL], "-c expects a number from 1"),
    (["--nonsense", "--", "wrk", URL], "unknown option: --nonsense"),
    (["-l", "5", "--", "wrk", URL], "-l and -s need -c"),
])
def test_wr_wrong_usage_exits_with_2(wr, words, message):
    done = wr.run(*words, code=2)
    assert message in done.stderr and "wr --help" in done.stderr and not done.stdout


@pytest.mark.parametrize("words, message", [
    (["--", "curl", URL], "wr supports wrk, "),
    (["--", "wrk", "index.html"], "the command contains no http:// or https:// URL"),
    (["--", "wrk", URL], "nothing listens on port 1 here"),
    (["--", "wrk", "http://example.org/"], "does not name this machine"),
    (["--pid", "4194305", "--", "wrk", URL], "there is no process 4194305"),
    (["--name", "no-such-server", "--", "wrk", URL], 'no process has the name "no-such-server"'),
    (["-c", "5", "--", "wrk", "--connections=3", URL], "write {c} in place of"),
    (["-c", "5", "--", "ab", "-kc", "100", URL], "the command contains -kc, but"),
])
def test_wr_reports_an_unknown_client_url_or_server(wr, words, message):
    done = wr.run(*words, code=1)
    assert message in done.stderr and not done.stdout


@pytest.mark.parametrize("words, message", [
    (["--length", "99"], "has 100 bytes, not 99"),
    (["--status", "404"], "has status 200, not 404"),
    (["--sha1", "0" * 40], "has the SHA-1 "),
])
def test_wr_wrong_response_fails_before_any_load(wr, serve, words, message):
    server = serve("slow", 0)
    done = wr.run(*words, "--", "wrk", server.url, code=1)
    assert "wrong response: " in done.stderr and message in done.stderr and not done.stdout


def test_wr_error_status_fails_unless_expected(wr, serve):
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
def test_wr_rejects_a_folder_that_is_no_control_group(wr, serve, folder):
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
def test_wr_checks_the_body_for_every_framing(wr, serve, answer):
    server = serve("saying", answer)
    wr.script("wrk", PRINT_WRK)
    wr.run(*HELLO, "--", "wrk", server.url)


@pytest.mark.parametrize("answer, message", [
    ("", "the connection was closed without a response"),
    ("SSH-2.0-OpenSSH_9.2\r\n", "the response does not begin with HTTP/1."),
    ("HTTP/1.1 200 OK\nContent-Length: 11\n\nhello world", "a line of the head does not end with CRLF"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello", "the response is incomplete"),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", "invalid chunked coding"),
], ids=["nothing", "other", "lf", "early", "chunked"])
def test_wr_reports_an_invalid_response(wr, serve, answer, message):
    server = serve("saying", answer)
    wr.script("wrk", PRINT_WRK)
    assert f"cannot check the response to GET {server.url}: {message}; --unchecked" in wr.run("--", "wrk", server.url, code=1).stderr
    wr.run("--unchecked", "--", "wrk", server.url)


def test_wr_writes_complete_steps_when_a_later_step_fails(wr, serve):
    server = serve("slow", 0)
    wr.script("ab", "import sys\nif '2' in sys.argv: sys.exit(9)\n"
              "print('Complete requests: 5\\nFailed requests: 0\\nTime taken for tests: 1.0 seconds\\n"
              "Requests per second: 5.0 [#/sec]')")
    done = wr.run("--json", "--steps", "1,2", "--", "ab", "-n", 5, server.url, code=1)
    document = json.loads(done.stdout)
    assert "failed with exit code 9" in done.stderr
    assert document["complete"] is False and [step["concurrency"] for step in document["steps"]] == [1]


def test_wr_reports_a_server_that_exits_during_a_shot(wr, serve):
    server = serve("dying", 10)
    done = wr.run("-c", 2, "--", "ab", "-n", 1000, server.url, code=1)
    assert f"the server's process {server.pid} (" in done.stderr and "ended during the shot" in done.stderr


def test_wr_reports_a_missing_client(wr, serve):
    server = serve("slow", 0)
    done = subprocess.run([wr.program, "--", "wrk", server.url], env={"PATH": str(wr.path)}, capture_output=True,
                          text=True, check=False, timeout=50)
    assert done.returncode == 1 and 'the client "wrk" is not installed' in done.stderr


@pytest.mark.parametrize("script, message", [
    ("print('good morning')", "cannot read the output of wrk: "),
    ("", "cannot read the output of wrk: "),
    ("import sys; print('no such host', file=sys.stderr); sys.exit(3)", "failed with exit code 3; its output: no such host"),
    ("import os; os.kill(os.getpid(), 9)", "was ended by signal 9"),
])
def test_wr_reports_a_failing_client(wr, serve, script, message):
    server = serve("slow", 0)
    wr.script("wrk", script)
    assert message in wr.run("--", "wrk", server.url, code=1).stderr


def test_wr_rejects_a_client_that_ignores_the_concurrency(wr, serve):
    server = serve("slow", 0)
    wr.script("wrk", PRINT_WRK.replace("1 connections", "10 connections"))
    assert "wrk reports 10 connections, not 7" in wr.run("-c", 7, "--", "wrk", server.url, code=1).stderr
    wr.run("-c", 10, "--", "wrk", server.url)
    wr.run("-c", 1, "--", "wrk", "-c", "{c}0", server.url)
    wr.run("--", "wrk", "-c", 7, server.url)


def test_wr_removes_control_characters_from_client_output(wr, serve):
    server = serve("slow", 0)
    wr.script("wrk", r"import sys; sys.stderr.write('\33[2J\33]0;x\7 good\r\n day'); sys.exit(3)")
    output = wr.run("--", "wrk", server.url, code=1).stderr
    assert "?[2J?]0;x? good?\n day" in output and not any(ord(c) < 32 and c != "\n" for c in output)


def test_wr_survives_a_server_that_resets_the_connection(wr, serve):
    server = serve("hanging-up")
    for _ in range(5):
        assert "cannot check the response" in wr.run("--", "wrk", "-H", "A: " + "x" * 100000, server.url, code=1).stderr


def test_wr_limits_the_output_of_a_client(wr, serve):
    server = serve("slow", 0)
    wr.script("wrk", "import sys\nfor _ in range(200): sys.stdout.write('x' * 65536)\nsys.stdout.write('the end')")
    output = wr.run("--", "wrk", server.url, code=1).stderr
    assert "exceeds a megabyte" in output and "the end" in output and len(output) < 2000


# A client and its child, both of which ignore SIGTERM.
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    with open({path!r}, "w") as file: file.write(str(os.getpid()))
time.sleep(300)
"""


def read_pid_file(path):
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


def wait_for_exit(pid):
    until = time.monotonic() + 20
    while is_running(pid):
        assert time.monotonic() < until, "the client outlived wr"
        time.sleep(0.02)


def test_wr_kills_a_client_and_its_children_after_the_limit(wr, serve, tmp_path):
    server = serve("slow", 0)
    wr.script("wrk", STUBBORN.format(path=str(tmp_path / "pid")))
    assert "did not end within 3 seconds" in wr.run("--limit", 3, "--", "wrk", server.url, code=1).stderr
    wait_for_exit(read_pid_file(tmp_path / "pid"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_wr_kills_the_client_when_interrupted(wr, serve, tmp_path, number):
    server = serve("slow", 0)
    wr.script("wrk", STUBBORN.format(path=str(tmp_path / "pid")))
    with subprocess.Popen([wr.program, "--", "wrk", server.url], env=wr.environment(), stderr=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, text=True) as process:
        pid = read_pid_file(tmp_path / "pid")
        process.send_signal(number)
        output = process.communicate(timeout=30)[1]
    assert process.returncode == 1 and "interrupted" in output
    wait_for_exit(pid)


def test_wr_checks_https_with_curl(wr, serve):
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
