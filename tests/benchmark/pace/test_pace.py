# SPDX-License-Identifier: Apache-2.0
"""The load client `pace` against a server whose faults are known."""
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


def finish(process):
    out, err = process.communicate(timeout=SECONDS)
    assert not BUGS.search(err), err
    return process.returncode, out, err


def run(*args):
    return finish(start(*args))


def check(result):
    """Every request that was due ended as right, or as one error of one class."""
    assert set(result["errors"]) == CLASSES
    assert result["asked"] == result["requests"] + sum(result["errors"].values())
    assert set(result["first_errors"]) == {name for name, n in result["errors"].items() if n}
    return result


def measure(server, *args, rate=200, seconds=1):
    code, out, err = run("-R", rate, "-d", seconds, "--json", *args, server.url)
    assert code == 0 and not err, err
    return check(json.loads(out))


def once(n, bad, good=answer()):
    """A reply that is bad at the n-th request."""
    return lambda at: bad if at == n else good


def test_all_that_was_asked_for_is_counted_as_the_server_counts_it():
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
        assert latency["p999"] is None  # of 300?
        assert set(result["late_us"]) == set(result["least_us"]) == set(latency)
        assert all(result["least_us"][name] <= latency[name] for name in latency if latency[name])
        assert set(result["doubtful"]) <= set(latency) and bool(result["doubtful"]) == (not result["kept_pace"])


def test_the_request_is_what_was_asked_for():
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
    """Pauses all answers for a while at its n-th request."""

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
    """Not wrk's: that corrects its percentiles afterwards, by what it expects to have missed."""
    done = subprocess.run(["ab", "-q", "-c", "4", "-t", "2", "-n", "100000", url], capture_output=True, text=True, check=True,
                          timeout=SECONDS)
    return float(re.search(r"^ +90% +(\d+)$", done.stdout, re.MULTILINE).group(1))


def test_a_stall_shows_in_the_open_loop_and_hides_in_a_closed_one():
    with FakeServer(Stalling(100)) as server:
        result = measure(server, "-c", 4, rate=200, seconds=2)
    # 120 of 400 requests were due during the stall: they all waited, on the average half of it.
    opened = result["latency_us"]
    assert opened["p99"] >= 0.8 * STALL * 1e6 and opened["p90"] >= 0.5 * STALL * 1e6
    assert result["queued"] >= 100 and result["requests"] == 400
    with FakeServer(Stalling(100)) as server:
        code, out, _ = run("--closed", "-c", 4, "-d", 2, "--json", server.url)
        closed = check(json.loads(out))
    assert code == 0 and closed["asked_rate"] is None
    assert closed["latency_us"]["max"] >= 0.9 * STALL * 1e6
    assert closed["latency_us"]["p90"] < opened["p90"] / 2  # four answers of hundreds were slow
    with FakeServer(Stalling(100, [LAST, CLOSE])) as server:
        assert ab_p90_ms(server.url) * 1000 < opened["p90"] / 2


def test_what_no_connection_is_free_for_in_time_is_an_error():
    def slow(n):
        time.sleep(0.1 if n > 1 else 0)
        return answer()

    with FakeServer(slow) as server:
        result = measure(server, "-c", 1, "--timeout", "400ms", rate=50)
        assert result["asked"] == 50 and 0 < result["requests"] < 30
        assert result["errors"]["timeout"] == 50 - result["requests"]
        assert result["queued"] > 0
        assert 1 + result["requests"] <= server.count <= 1 + 50 - result["unsent"]  # some ended on their way
        assert "connections were busy" in result["first_errors"]["timeout"] or "in time" in result["first_errors"]["timeout"]
        assert result["latency_us"]["p75"] is None and result["latency_us"]["p90"] is None  # most of them failed
        text = run("-R", 50, "-d", 1, "-c", 1, "--timeout", "400ms", server.url)[1]
        assert "p90 > timeout, " in text
        assert "all 1 connections were busy" in text


def test_a_client_that_is_late_itself_says_so():
    with FakeServer() as server:
        process = start("-R", 200, "-d", 2, server.url)
        server.wait_for_count(50)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.4)
        process.send_signal(signal.SIGCONT)
        code, out, _ = finish(process)
    assert code == 0 and "did not keep its own pace" in out and "late itself" in out
    assert re.search(r"Do not trust these latencies: .*p90, .*p99", out)


def test_own_delays_are_distinguished_from_the_servers():
    with FakeServer() as server:
        process = start("-R", 200, "-d", 2, "--json", server.url)
        server.wait_for_count(50)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.4)
        process.send_signal(signal.SIGCONT)
        result = check(json.loads(finish(process)[1]))
    assert result["kept_pace"] is False and result["why_not"]
    assert result["late_us"]["max"] >= 300_000
    assert {"p90", "p95", "p99", "mean"} <= set(result["doubtful"])  # 80 of 400 were due while it was stopped


@pytest.mark.parametrize("how", [[], ["--spin"]], ids=["sleeping", "spinning"])
def test_a_stop_while_answers_are_under_way_is_not_the_servers(how):
    """All 20 of a burst are asked in time. Their answers are there while pace is stopped, and are read late."""
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
        result = check(json.loads(finish(process)[1]))
    assert result["latency_us"]["p50"] >= 1_000_000 and result["least_us"]["p50"] < result["latency_us"]["p50"] - 900_000
    assert {"p50", "p90", "mean"} <= set(result["doubtful"])


def test_waiting_for_a_slow_server_is_not_the_clients_delay():
    with FakeServer(lambda n: time.sleep(0.03 if n > 1 else 0) or answer()) as server:
        result = measure(server, "-c", 1, "--timeout", "20s", rate=100)
    assert result["queued"] > 50
    assert result["least_us"]["p50"] >= 500_000  # of more than a second: three in four wait for their turn


def test_being_late_is_seen_while_all_connections_are_busy():
    """The one connection is always busy: what is due then waits for it, and no wake-up is planned."""
    with FakeServer(lambda n: time.sleep(0.03) or answer()) as server:
        process = start("-R", 100, "-c", 1, "-d", 2, "--timeout", "20s", "--json", server.url)
        server.wait_for_count(20)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.4)
        process.send_signal(signal.SIGCONT)
        result = check(json.loads(finish(process)[1]))
    assert result["queued"] > 100 and result["late_us"]["max"] >= 300_000
    assert result["kept_pace"] is False and "late" in result["why_not"]


def test_other_gaps_have_the_same_mean():
    with FakeServer() as server:
        first, second = (measure(server, "--poisson", rate=200) for _ in range(2))
        other = measure(server, "--poisson", "--seed", 2, rate=200)
    assert first["schedule"] == "poisson" and first["asked"] == second["asked"]
    assert all(120 < result["asked"] < 280 for result in (first, other))


def test_it_may_spin():
    with FakeServer() as server:
        assert measure(server, "--spin", rate=100, seconds=0.3)["requests"] == 30


# ---- Answers ----

def test_a_wrong_answer_is_named():
    with FakeServer(once(50, answer(b"hallo"))) as server:
        result = measure(server)
        assert result["errors"]["content"] == 1 and "at byte 1" in result["first_errors"]["content"]
    with FakeServer(once(50, answer(b"hell"))) as server:
        assert "4 bytes of content, not 5" in measure(server)["first_errors"]["content"]
    with FakeServer(once(50, answer(b"hello", "503 Busy"))) as server:
        text = run("-R", 200, "-d", 1, server.url)[1]
        assert re.search(r"status +1, the first: status 503, not 200", text)


@pytest.mark.parametrize("wrong, error, words", [(answer(b"hello", "503 Busy"), "status", "status 503, not 200"),
                                                 (answer(b"hallo"), "content", "at byte 1"),
                                                 ([b"no\r\n", CLOSE], "read", "does not begin with HTTP/1.")])
def test_all_answers_may_be_wrong(wrong, error, words):
    with FakeServer(lambda n: wrong if n > 10 else answer()) as server:
        result = measure(server, rate=50)
        code, out, err = run("-R", 10, "--sha1", hashlib.sha1(b"hello").hexdigest(), server.url)
    assert code == 1 and not out and f"the first request failed ({error}): " in err
    assert result["before"] == {"requests": 10, "errors": 0}
    assert result["asked"] == result["errors"][error] == 50 and result["requests"] == result["rate"] == 0
    assert words in result["first_errors"][error]
    assert {result["latency_us"][name] for name in ("mean", "p50", "p99", "max")} == {None}


ENDLESS = b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\nhello!"


def test_an_answer_that_is_too_long_is_not_read_to_its_end():
    """Its end never comes: waiting for it would be a timeout."""
    with FakeServer(once(50, ENDLESS)) as server:
        result = measure(server, "--timeout", "20s")
        assert result["errors"]["content"] == 1 and result["requests"] == 199
        assert result["first_errors"]["content"] == "more than 5 bytes of content"
    with FakeServer(lambda n: ENDLESS) as server:
        code, out, err = run("-R", 10, "--length", 5, "--timeout", "20s", server.url)
        assert code == 1 and not out and "the first request failed (content): more than 5 bytes of content" in err


def test_what_varies_is_no_error_if_one_says_so():
    with FakeServer(lambda n: answer(b"%d" % n)) as server:
        result = measure(server, "--varies")
        assert result["requests"] == 200 and result["check"] == {"status": 200, "length": None, "sha1": None}


def test_the_first_answer_is_checked_before_anything_is_measured():
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
def test_answers_of_all_kinds(reply):
    with FakeServer(lambda n: reply) as server:
        result = measure(server)
        assert result["requests"] == 200 and server.count == 200 + result["before"]["requests"]
        if isinstance(reply, list) and CLOSE in reply:
            assert result["opened"] == 200


def test_one_request_on_each_connection():
    with FakeServer() as server:
        result = measure(server, "--close")
        assert result["requests"] == result["opened"] == 200 and result["before"]["requests"] == 1
        assert server.n_connections == server.count == 201
        assert "Connection: close" in server.requests[-1]


def test_a_large_content_is_compared_to_its_last_byte():
    body = os.urandom(3_000_000)
    with FakeServer(once(15, answer(body[:-1] + bytes([body[-1] ^ 1])), answer(body))) as server:
        result = measure(server, "-c", 2, rate=20)
        assert result["errors"]["content"] == 1 and "at byte 2999999" in result["first_errors"]["content"]


# ---- Servers that misbehave ----

@pytest.mark.parametrize("bad, words", [
    (RESET, "Connection reset"),
    (CLOSE, "closed without"),
    ([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", CLOSE], "ended in the middle"),
    (b"SSH-2.0-OpenSSH_9.2\r\n", "does not begin with HTTP/1."),
    (b"HTTP/1.1 200 OK\nA: b\n\n", "CRLF"),
    (b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000, "longer than 32 KB"),
], ids=["reset", "close", "early", "garbage", "lf", "endless"])
def test_a_bad_answer_costs_one_request(bad, words):
    # On a connection of its own each, so that no request goes twice.
    with FakeServer(once(50, bad if isinstance(bad, list) else [bad])) as server:
        result = measure(server, "--close")
        assert result["errors"]["read"] == 1 and words in result["first_errors"]["read"]
        assert result["requests"] == 199


def test_an_answer_that_does_not_come_is_a_timeout():
    with FakeServer(once(50, b"")) as server:
        result = measure(server, "--timeout", "300ms")
        assert result["errors"]["timeout"] == 1 and result["requests"] == 199
        assert result["first_errors"]["timeout"] == "no response in time"
    with FakeServer(once(50, answer()[:-1])) as server:
        assert measure(server, "--timeout", "300ms")["first_errors"]["timeout"] == "the response did not end in time"


def test_a_connection_that_the_server_closed_while_idle_is_no_error():
    with FakeServer(lambda n: [answer(), CLOSE]) as server:
        result = measure(server, "-c", 3, rate=100)
        assert result["requests"] == 100 and sum(result["errors"].values()) == 0
        assert result["opened"] >= 97


def test_unrequested_bytes_are_reported():
    with FakeServer(once(50, answer() + b"more")) as server:
        result = measure(server)
        assert result["stray"] == 1 and result["requests"] == 200


def test_a_server_that_goes_away_is_counted():
    with FakeServer() as server:
        process = start("-R", 200, "-d", 2, "--json", server.url)
        server.wait_for_count(100)
        server.leave()
        result = check(json.loads(finish(process)[1]))
        assert result["asked"] == 400 and result["errors"]["connect"] > 0 and result["requests"] > 0
        assert "refused" in result["first_errors"]["connect"]


# ---- Command line ----

def test_an_interrupted_run_reports_what_there_is():
    with FakeServer() as server:
        process = start("-R", 100, "-d", "10m", "--json", server.url)
        server.wait_for_count(30)
        process.send_signal(signal.SIGINT)
        code, out, _ = finish(process)
        result = check(json.loads(out))
        assert code == 0 and result["asked"] >= 1 and result["seconds"] < 300


def test_a_name_may_have_addresses_without_a_listener():
    with FakeServer() as server:  # localhost may be ::1 first
        code, _, err = run("-R", 10, "-d", "100ms", f"http://localhost:{server.port}/")
        assert code == 0, err


def test_what_cannot_be_reached_is_a_failure():
    with FakeServer() as server:
        url = server.url
    code, out, err = run("-R", 10, url)
    assert code == 1 and not out and "connect" in err and url in err


def test_more_connections_than_open_files_are_refused():
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    with FakeServer() as server:
        process = subprocess.Popen([PACE, "-R", "10", "-c", "100", server.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=os.environ | ENVIRONMENT, preexec_fn=limit)
        code, out, err = finish(process)
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
    (["--nothing"], "no such option"),
    (["-vZ", "http://127.0.0.1/"], "no such option: -Z"),
    (["-R"], "needs an argument"),
])
def test_mistakes_are_explained(args, words):
    code, out, err = run(*args)
    assert code == 2 and not out and words in err and "pace --help" in err


def test_help_and_version_go_to_standard_output():
    code, out, _ = run("--help")
    assert code == 0 and "--poisson" in out
    assert re.fullmatch(r"pace \d+\.\d+\.\d+\n", run("-v")[1])


def test_the_man_page_knows_every_option():
    page = (PROGRAM.parents[2] / "tools" / "pace" / "pace.1").read_text().replace("\\-", "-")
    for name in re.findall(r"--[a-z0-9]+", run("--help")[1]):
        assert name in page, name
