# SPDX-License-Identifier: Apache-2.0
"""The load client `pace` against a server that misbehaves in known ways."""
import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import threading
import time

import pytest

from fake_http import CLOSE, RESET, SECONDS, FakeServer, answer
from monkey import BUGS, ENVIRONMENT, PROGRAM

PACE = PROGRAM.with_name("pace")
LAST = answer(b"hello", "200 OK", "Connection: close")
CLASSES = {"connect", "read", "write", "timeout", "status", "content"}


def start(*args):
    return subprocess.Popen([PACE, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=os.environ | ENVIRONMENT)


def wait_for_exit(process):
    out, err = process.communicate(timeout=SECONDS)
    assert not BUGS.search(err), err
    return process.returncode, out, err


def run(*args):
    return wait_for_exit(start(*args))


def check_counts(result):
    """Every due request ends either as a correct response or as an error of exactly one class."""
    assert set(result["errors"]) == CLASSES
    assert result["asked"] == result["requests"] + sum(result["errors"].values())
    assert set(result["first_errors"]) == {name for name, n in result["errors"].items() if n}
    return result


def measure(server, *args, rate=200, seconds=1):
    code, out, err = run("-R", rate, "-d", seconds, "--json", *args, server.url)
    assert code == 0 and not err, err
    return check_counts(json.loads(out))


def bad_at(n, bad, good=answer()):
    """Returns a reply function that sends `bad` as the n-th response."""
    return lambda at: bad if at == n else good


def test_pace_counts_match_the_server():
    with FakeServer() as server:
        result = measure(server, "-c", 5, rate=300)
        assert result["asked"] == result["requests"] == 300 and result["asked_rate"] == 300
        assert result["before"] == {"requests": 5, "errors": 0}
        assert server.count == 305 and server.n_connections == 5
        assert result["bytes"] == 300 * len(answer())
        assert 1 <= result["seconds"] < SECONDS
        assert result["rate"] == pytest.approx(300 / result["seconds"], rel=0.001)
        assert result["check"] == {"status": 200, "length": 5, "sha1": hashlib.sha1(b"hello").hexdigest()}
        latency = result["latency_us"]
        assert 0 < latency["p50"] <= latency["p75"] <= latency["p90"] <= latency["p95"] <= latency["p99"] <= latency["max"]
        assert latency["p999"] is None  # p999 requires more than 300 requests
        assert set(result["late_us"]) == set(result["least_us"]) == set(latency)
        assert all(result["least_us"][name] <= latency[name] for name in latency if latency[name])
        assert set(result["doubtful"]) <= set(latency) and bool(result["doubtful"]) == (not result["kept_pace"])


def test_pace_sends_the_requested_headers():
    with FakeServer() as server:
        measure(server, "-H", "Accept: text/x", "-H", "Host: other.example", rate=10, seconds=0.2)
        lines = server.requests[-1].split("\r\n")
        assert lines[0] == "GET /x HTTP/1.1"
        assert "Accept: text/x" in lines and "Host: other.example" in lines
        assert sum(line.lower().startswith("host:") for line in lines) == 1
    with FakeServer() as server:
        measure(server, rate=10, seconds=0.2)
        assert f"Host: 127.0.0.1:{server.port}" in server.requests[0]


# ---- The open loop ----

STALL = 0.6


class Stalling:
    """Blocks all responses for a while at the n-th request."""

    def __init__(self, n, reply=answer()):
        self._n, self._reply, self._gate = n, reply, threading.Event()
        self._gate.set()

    def __call__(self, n):
        if n == self._n:
            self._gate.clear()
            time.sleep(STALL)
            self._gate.set()
        self._gate.wait(SECONDS)
        return self._reply


def ab_p90_ms(url):
    """Runs ab, because wrk corrects its percentiles for requests that it assumes it missed."""
    done = subprocess.run(["ab", "-q", "-c", "4", "-t", "2", "-n", "100000", url], capture_output=True, text=True, check=True,
                          timeout=SECONDS)
    return float(re.search(r"^ +90% +(\d+)$", done.stdout, re.MULTILINE).group(1))


def test_open_loop_latency_shows_a_stall_that_closed_loops_hide():
    with FakeServer(Stalling(100)) as server:
        result = measure(server, "-c", 4, rate=200, seconds=2)
    # 120 of 400 requests were due during the stall; on average they waited for half of it.
    opened = result["latency_us"]
    assert opened["p99"] >= 0.8 * STALL * 1e6 and opened["p90"] >= 0.5 * STALL * 1e6
    assert result["queued"] >= 100 and result["requests"] == 400
    with FakeServer(Stalling(100)) as server:
        code, out, _ = run("--closed", "-c", 4, "-d", 2, "--json", server.url)
        closed = check_counts(json.loads(out))
    assert code == 0 and closed["asked_rate"] is None
    assert closed["latency_us"]["max"] >= 0.9 * STALL * 1e6
    assert closed["latency_us"]["p90"] < opened["p90"] / 2  # only four of several hundred responses were slow
    with FakeServer(Stalling(100, [LAST, CLOSE])) as server:
        assert ab_p90_ms(server.url) * 1000 < opened["p90"] / 2


def test_request_without_a_free_connection_in_time_is_a_timeout():
    def slow(n):
        time.sleep(0.1 if n > 1 else 0)
        return answer()

    with FakeServer(slow) as server:
        result = measure(server, "-c", 1, "--timeout", "400ms", rate=50)
        assert result["asked"] == 50 and 0 < result["requests"] < 30
        assert result["errors"]["timeout"] == 50 - result["requests"]
        assert result["queued"] > 0
        assert 1 + result["requests"] <= server.count <= 1 + 50 - result["unsent"]  # some timed out after they were sent
        assert "connections were busy" in result["first_errors"]["timeout"] or "in time" in result["first_errors"]["timeout"]
        assert result["latency_us"]["p75"] is None and result["latency_us"]["p90"] is None  # most requests failed
        text = run("-R", 50, "-d", 1, "-c", 1, "--timeout", "400ms", server.url)[1]
        assert "p90 > timeout, " in text
        assert "all 1 connections were busy" in text


def test_pace_reports_its_own_delay():
    with FakeServer() as server:
        process = start("-R", 200, "-d", 2, server.url)
        server.wait_for_count(50)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.4)
        process.send_signal(signal.SIGCONT)
        code, out, _ = wait_for_exit(process)
    assert code == 0 and "did not keep its own pace" in out and "late itself" in out
    assert re.search(r"Do not trust these latencies: .*p90, .*p99", out)


def test_pace_marks_latencies_with_its_own_delay_as_doubtful():
    with FakeServer() as server:
        process = start("-R", 200, "-d", 2, "--json", server.url)
        server.wait_for_count(50)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.4)
        process.send_signal(signal.SIGCONT)
        result = check_counts(json.loads(wait_for_exit(process)[1]))
    assert result["kept_pace"] is False and result["why_not"]
    assert result["late_us"]["max"] >= 300_000
    assert {"p90", "p95", "p99", "mean"} <= set(result["doubtful"])  # 80 of 400 requests were due while pace was stopped


@pytest.mark.parametrize("how", [[], ["--spin"]], ids=["sleeping", "spinning"])
def test_stop_of_pace_does_not_count_as_server_latency(how):
    """pace sends all 20 requests of a burst in time. Their responses arrive while it is stopped, so it reads them late."""
    gate = threading.Event()

    def reply(n):
        if n > 30:
            gate.wait(SECONDS)
        return answer()

    with FakeServer(reply) as server:
        process = start("-R", 100, "-c", 30, "-d", "0.2", "--timeout", "20s", *how, "--json", server.url)
        server.wait_for_count(50)
        process.send_signal(signal.SIGSTOP)
        gate.set()
        time.sleep(1)
        process.send_signal(signal.SIGCONT)
        result = check_counts(json.loads(wait_for_exit(process)[1]))
    assert result["latency_us"]["p50"] >= 1_000_000 and result["least_us"]["p50"] < result["latency_us"]["p50"] - 900_000
    assert {"p50", "p90", "mean"} <= set(result["doubtful"])


def test_wait_for_a_slow_server_is_not_pace_delay():
    with FakeServer(lambda n: time.sleep(0.03 if n > 1 else 0) or answer()) as server:
        result = measure(server, "-c", 1, "--timeout", "20s", rate=100)
    assert result["queued"] > 50
    assert result["least_us"]["p50"] >= 500_000  # three of four requests wait for the connection


def test_pace_detects_its_delay_while_all_connections_are_busy():
    """The only connection is always busy: due requests wait for it, and pace schedules no wake-up."""
    with FakeServer(lambda n: time.sleep(0.03) or answer()) as server:
        process = start("-R", 100, "-c", 1, "-d", 2, "--timeout", "20s", "--json", server.url)
        server.wait_for_count(20)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.4)
        process.send_signal(signal.SIGCONT)
        result = check_counts(json.loads(wait_for_exit(process)[1]))
    assert result["queued"] > 100 and result["late_us"]["max"] >= 300_000
    assert result["kept_pace"] is False and "late" in result["why_not"]


def test_poisson_gaps_have_the_same_mean_rate():
    with FakeServer() as server:
        first, second = (measure(server, "--poisson", rate=200) for _ in range(2))
        other = measure(server, "--poisson", "--seed", 2, rate=200)
    assert first["schedule"] == "poisson" and first["asked"] == second["asked"]
    assert all(120 < result["asked"] < 280 for result in (first, other))


def test_spin_sends_at_the_rate():
    with FakeServer() as server:
        assert measure(server, "--spin", rate=100, seconds=0.3)["requests"] == 30


# ---- Answers ----

def test_wrong_response_is_reported():
    with FakeServer(bad_at(50, answer(b"hallo"))) as server:
        result = measure(server)
        assert result["errors"]["content"] == 1 and "at byte 1" in result["first_errors"]["content"]
    with FakeServer(bad_at(50, answer(b"hell"))) as server:
        assert "4 bytes of content, not 5" in measure(server)["first_errors"]["content"]
    with FakeServer(bad_at(50, answer(b"hello", "503 Busy"))) as server:
        text = run("-R", 200, "-d", 1, server.url)[1]
        assert re.search(r"status +1, the first: status 503, not 200", text)


@pytest.mark.parametrize("wrong, error, words", [(answer(b"hello", "503 Busy"), "status", "status 503, not 200"),
                                                 (answer(b"hallo"), "content", "at byte 1"),
                                                 ([b"no\r\n", CLOSE], "read", "does not begin with HTTP/1.")])
def test_all_responses_wrong_gives_no_latency(wrong, error, words):
    with FakeServer(lambda n: wrong if n > 10 else answer()) as server:
        result = measure(server, rate=50)
        code, out, err = run("-R", 10, "--sha1", hashlib.sha1(b"hello").hexdigest(), server.url)
    assert code == 1 and not out and f"the first request failed ({error}): " in err
    assert result["before"] == {"requests": 10, "errors": 0}
    assert result["asked"] == result["errors"][error] == 50 and result["requests"] == result["rate"] == 0
    assert words in result["first_errors"][error]
    assert {result["latency_us"][name] for name in ("mean", "p50", "p99", "max")} == {None}


ENDLESS = b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\nhello!"


def test_response_that_is_too_long_fails_before_its_end():
    """The response body never ends: reading to the end would time out."""
    with FakeServer(bad_at(50, ENDLESS)) as server:
        result = measure(server, "--timeout", "20s")
        assert result["errors"]["content"] == 1 and result["requests"] == 199
        assert result["first_errors"]["content"] == "more than 5 bytes of content"
    with FakeServer(lambda n: ENDLESS) as server:
        code, out, err = run("-R", 10, "--length", 5, "--timeout", "20s", server.url)
        assert code == 1 and not out and "the first request failed (content): more than 5 bytes of content" in err


def test_varies_option_accepts_different_responses():
    with FakeServer(lambda n: answer(b"%d" % n)) as server:
        result = measure(server, "--varies")
        assert result["requests"] == 200 and result["check"] == {"status": 200, "length": None, "sha1": None}


def test_first_response_is_checked_before_the_measurement():
    cases = {("--status", "404"): "status 200, not 404", ("--length", "6"): "5 bytes of content, not 6",
             ("--sha1", "0" * 40): "SHA-1 of the content aaf4c61d"}
    for args, words in cases.items():
        with FakeServer() as server:
            code, out, err = run("-R", 10, *args, server.url)
            assert code == 1 and not out and words in err and server.count == 1
    with FakeServer() as server:
        measure(server, "--length", 5, "--sha1", hashlib.sha1(b"hello").hexdigest(), rate=10, seconds=0.2)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n1\r\no\r\n0\r\n\r\n"


@pytest.mark.parametrize("reply", [CHUNKED, [b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo", CLOSE], [LAST, CLOSE],
                                   [b"HTTP/1.1 103 Early Hints\r\n\r\n", answer()]],
                         ids=["chunked", "until-close", "close", "interim"])
def test_response_framings_are_supported(reply):
    with FakeServer(lambda n: reply) as server:
        result = measure(server)
        assert result["requests"] == 200 and server.count == 200 + result["before"]["requests"]
        if isinstance(reply, list) and CLOSE in reply:
            assert result["opened"] == 200


def test_close_option_uses_one_connection_per_request():
    with FakeServer() as server:
        result = measure(server, "--close")
        assert result["requests"] == result["opened"] == 200 and result["before"]["requests"] == 1
        assert server.n_connections == server.count == 201
        assert "Connection: close" in server.requests[-1]


def test_large_body_is_compared_to_its_last_byte():
    body = os.urandom(3_000_000)
    with FakeServer(bad_at(15, answer(body[:-1] + bytes([body[-1] ^ 1])), answer(body))) as server:
        result = measure(server, "-c", 2, rate=20)
        assert result["errors"]["content"] == 1 and "at byte 2999999" in result["first_errors"]["content"]


# ---- Servers that misbehave ----

@pytest.mark.parametrize("bad, words", [
    (RESET, "Connection reset"),
    (CLOSE, "closed without"),
    ([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", CLOSE], "the response is incomplete"),
    (b"SSH-2.0-OpenSSH_9.2\r\n", "does not begin with HTTP/1."),
    (b"HTTP/1.1 200 OK\nA: b\n\n", "CRLF"),
    (b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000, "longer than 32 KB"),
], ids=["reset", "close", "early", "garbage", "lf", "endless"])
def test_bad_response_fails_one_request(bad, words):
    # pace does not retry when each request has its own connection.
    with FakeServer(bad_at(50, bad if isinstance(bad, list) else [bad])) as server:
        result = measure(server, "--close")
        assert result["errors"]["read"] == 1 and words in result["first_errors"]["read"]
        assert result["requests"] == 199


def test_missing_response_is_a_timeout():
    with FakeServer(bad_at(50, b"")) as server:
        result = measure(server, "--timeout", "300ms")
        assert result["errors"]["timeout"] == 1 and result["requests"] == 199
        assert result["first_errors"]["timeout"] == "no response in time"
    with FakeServer(bad_at(50, answer()[:-1])) as server:
        assert measure(server, "--timeout", "300ms")["first_errors"]["timeout"] == "the response did not end in time"


def test_idle_connection_closed_by_the_server_is_no_error():
    with FakeServer(lambda n: [answer(), CLOSE]) as server:
        result = measure(server, "-c", 3, rate=100)
        assert result["requests"] == 100 and sum(result["errors"].values()) == 0
        assert result["opened"] >= 97


def test_unexpected_bytes_are_reported():
    with FakeServer(bad_at(50, answer() + b"more")) as server:
        result = measure(server)
        assert result["stray"] == 1 and result["requests"] == 200


def test_server_exit_gives_connect_errors():
    with FakeServer() as server:
        process = start("-R", 200, "-d", 2, "--json", server.url)
        server.wait_for_count(100)
        server.leave()
        result = check_counts(json.loads(wait_for_exit(process)[1]))
        assert result["asked"] == 400 and result["errors"]["connect"] > 0 and result["requests"] > 0
        assert "refused" in result["first_errors"]["connect"]


# ---- Command line ----

def test_interrupted_run_prints_a_report():
    with FakeServer() as server:
        process = start("-R", 100, "-d", "10m", "--json", server.url)
        server.wait_for_count(30)
        process.send_signal(signal.SIGINT)
        code, out, _ = wait_for_exit(process)
        result = check_counts(json.loads(out))
        assert code == 0 and result["asked"] >= 1 and result["seconds"] < 300


def test_host_addresses_without_a_listener_are_skipped():
    with FakeServer() as server:  # localhost may resolve to ::1 first
        code, _, err = run("-R", 10, "-d", "100ms", f"http://localhost:{server.port}/")
        assert code == 0, err


def test_unreachable_server_fails():
    with FakeServer() as server:
        url = server.url
    code, out, err = run("-R", 10, url)
    assert code == 1 and not out and "connect" in err and url in err


def test_more_connections_than_descriptors_fail():
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    with FakeServer() as server:
        process = subprocess.Popen([PACE, "-R", "10", "-c", "100", server.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=os.environ | ENVIRONMENT, preexec_fn=limit)
        code, out, err = wait_for_exit(process)
        assert code == 1 and not out and "100 connections need 116 open files, but only 64 are allowed" in err
        assert server.count == 0


@pytest.mark.parametrize("args, words", [
    ([], "the URL is missing"),
    (["http://127.0.0.1/"], "-R RATE"),
    (["-R", "0", "http://127.0.0.1/"], "-R expects"),
    (["-R", "1e-300", "http://127.0.0.1/"], "-R expects"),
    (["-R", "nan", "http://127.0.0.1/"], "-R expects"),
    (["-R", "1", "--closed", "http://127.0.0.1/"], "use either -R or --closed"),
    (["-R", "1", "https://127.0.0.1/"], "http://"),
    (["-R", "1", "-c", "0", "http://127.0.0.1/"], "-c expects"),
    (["-R", "1", "-d", "5x", "http://127.0.0.1/"], "-d expects a time"),
    (["-R", "1", "--sha1", "abc", "http://127.0.0.1/"], "--sha1 expects"),
    (["-R", "1", "-H", "no colon", "http://127.0.0.1/"], "-H expects"),
    (["-R", "1", "-H", "A: b\r\nC: d", "http://127.0.0.1/"], "-H expects"),
    (["-R", "1", "-H", "Content-Length: 5", "http://127.0.0.1/"], "no content"),
    (["-R", "1", "http://127.0.0.1/", "http://127.0.0.1/"], "one URL"),
    (["--nothing"], "unknown option"),
    (["-vZ", "http://127.0.0.1/"], "unknown option: -Z"),
    (["-R"], "needs an argument"),
])
def test_wrong_usage_is_explained(args, words):
    code, out, err = run(*args)
    assert code == 2 and not out and words in err and "pace --help" in err


def test_help_and_version_go_to_standard_output():
    code, out, _ = run("--help")
    assert code == 0 and "--poisson" in out
    assert re.fullmatch(r"pace \d+\.\d+\.\d+\n", run("-v")[1])


def test_man_page_lists_every_option():
    page = (PROGRAM.parents[2] / "tools" / "pace" / "pace.1").read_text().replace("\\-", "-")
    for name in re.findall(r"--[a-z0-9]+", run("--help")[1]):
        assert name in page, name
