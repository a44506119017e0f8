# SPDX-License-Identifier: Apache-2.0
"""The limits plugin. Times are compared only in the direction in which a slow machine cannot make the test fail."""
import os
import re
import signal
import subprocess
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from monkey import PROGRAM, SECONDS
from proc import sleeps


@pytest.fixture
def limited(monkey, site):
    """Starts a server with these limits above its host."""
    def start(limits="", below="", **keys):
        section = textwrap.indent(textwrap.dedent(limits).strip("\n"), "    ")
        own = textwrap.indent(textwrap.dedent(below).strip("\n"), "    ")
        top = keys.pop("top", "") + (f"[LIMITS]\n{section}\n" if section.strip() else "")
        keys["sections"] = (f"[LIMITS]\n{own}\n" if own.strip() else "") + keys.get("sections", "")
        return monkey(plugins=["limits"] + keys.pop("plugins", []), top=top, **keys)

    return start


def ask(server, target="/", n=1, source=None, listener=0, **how):
    """Returns the statuses of n requests, each on a connection of its own."""
    statuses = []
    for _ in range(n):
        with server.connect(listener, source=source) as c:
            statuses.append(c.get(target, **how).status)
    return statuses


# ---- Requests ----


def test_limits_without_rules_allow_everything(limited, site):
    site.add("index.html", "index")
    assert ask(limited(), n=20) == [200] * 20


def test_limits_requests_per_hour_apply(limited, site):
    site.add("index.html", "index")
    server = limited("Requests 5/h")
    assert ask(server, n=8) == [200] * 5 + [429] * 3
    with server.connect() as c:
        reply = c.get("/")
        assert reply.status == 429
        assert 600 <= int(reply["Retry-After"]) <= 721  # one request is allowed every 12 minutes
        assert c.get("/", method="HEAD").status == 429  # the connection stays open


@pytest.mark.parametrize("rule, expected", [
    ("1/d", 1), ("1/h burst 1", 1), ("1/h burst 7", 7), ("100/h burst 3", 3), ("6/d", 6), ("2/h by address", 2),
    ("/ 2/h", 2), ("*.html / 3/h", 3), ("3/h by path", 3), ("4/h by all", 4), ("/x 2/h", 10),
])
def test_limits_burst_determines_requests_at_once(limited, site, rule, expected):
    site.add("index.html", "index")
    assert ask(limited(f"Requests {rule}"), n=10) == ([200] * expected + [429] * 10)[:10]


def test_limits_all_matching_rules_count(limited, site):
    for name in ("api/a", "api/b", "x"):
        site.add(name, "text")
    server = limited("""
        Requests 10/d
        Requests /api/* 3/d
        Requests /api/b 1/d by all
    """)
    assert ask(server, "/api/b", 2) == [200, 429]
    assert ask(server, "/api/a", 3) == [200, 429, 429]  # the refused request counted for /api/*
    assert ask(server, "/x", 10) == [200] * 5 + [429] * 5


def test_limits_count_by_address(limited, site):
    site.add("index.html", "index")
    path = site.path.parent / "sock"
    server = limited("Requests 2/d", listen=["127.0.0.1:0", "[::1]:0", f"unix:{path}"])
    for source in ("127.0.0.1", "127.0.0.2", "127.1.2.3"):
        assert ask(server, n=3, source=source) == [200, 200, 429]
    assert ask(server, n=3, listener=1) == [200, 200, 429]
    assert ask(server, n=3, listener=2) == [200, 200, 429]


def test_limits_count_ipv6_clients_by_network(limited, site):
    """An IPv6 client has 2^64 addresses in its network; the test sets them in a proxy header."""
    site.add("index.html", "index")
    server = limited("Requests 2/d", plugins=["security"],
                     top="[SECURITY]\n    TrustedProxy 127.0.0.1\n    RealAddress X-Real-IP\n")
    for prefix in ("2001:db8:1:1", "2001:db8:1:2"):
        for at, expected in enumerate((200, 200, 429, 429)):
            assert ask(server, fields={"X-Real-IP": f"{prefix}::{at:x}"}) == [expected]
    for last, expected in ((1, 200), (2, 200), (1, 200), (1, 429), (2, 200), (2, 429)):
        assert ask(server, fields={"X-Real-IP": f"192.0.2.{last}"}) == [expected]


def test_limits_count_by_path(limited, site):
    for name in ("a", "b"):
        site.add(name, "text")
    server = limited("Requests 2/d by path", host="ServerName one.example",
                     sections="[HOST]\n    ServerName two.example\n    DocumentRoot site\n")
    for host in ("one.example", "two.example"):
        for target in ("/a", "/b"):
            assert ask(server, target, 3, host=host) == [200, 200, 429]
    assert ask(server, "//a?x", host="one.example", source="127.0.0.9") == [429]


def test_limits_count_by_address_and_path(limited, site):
    site.add("a", "text")
    server = limited("Requests 1/d by address path")
    assert ask(server, "/a", 2) == [200, 429]
    assert ask(server, "/b", 2) == [404, 429]
    assert ask(server, "/a", 2, source="127.0.0.2") == [200, 429]


def test_limits_count_by_header(limited, site):
    site.add("index.html", "index")
    server = limited("Requests 2/d by header X-Api-Key")
    for key in ("one", "two"):
        for source in ("127.0.0.1", "127.0.0.2"):
            assert ask(server, source=source, fields={"x-api-key": key}) == [200]
        assert ask(server, fields={"X-API-Key": key}) == [429]
    for source in ("127.0.0.1", "127.0.0.2"):  # a client without the header is counted by its address
        assert ask(server, n=3, source=source) == [200, 200, 429]
        assert ask(server, source=source, fields={"X-Api-Key": ""}) == [429]


def test_limits_except_addresses_and_paths(limited, site):
    site.add("index.html", "index")
    site.add("health", "fine")
    server = limited("Requests 2/d\nExcept 127.0.0.2 127.0.1.0/24\nExcept /health *.css")
    assert ask(server, n=9, source="127.0.0.2") == [200] * 9
    assert ask(server, n=9, source="127.0.1.77") == [200] * 9
    assert ask(server, "/health", n=9) == [200] * 9
    assert ask(server, "/a.css", n=9) == [404] * 9
    assert ask(server, n=3) == [200, 200, 429]


def test_limits_of_hosts_are_separate(limited, site):
    site.add("index.html", "index")
    other = "[HOST]\n    ServerName {0}\n    DocumentRoot site\n\n"
    server = limited("Requests 4/d", host="ServerName one.example", sections=other.format("two.example") +
                     other.format("own.example") + "[LIMITS]\n    Requests 2/d\n\n" +
                     other.format("twin.example") + "[LIMITS]\n    Requests 2/d\n\n" +
                     other.format("free.example") + "[LIMITS]\n    Except /\n")
    assert ask(server, n=3, host="one.example") == [200] * 3
    assert ask(server, n=3, host="two.example") == [200, 429, 429]  # limits above the hosts apply to all hosts together
    assert ask(server, n=3, host="own.example") == [200, 200, 429]
    assert ask(server, n=3, host="twin.example") == [200, 200, 429]
    assert ask(server, n=9, host="free.example") == [200] * 9


@pytest.mark.processes("it has no processes of workers")
def test_limits_are_shared_by_all_workers(limited, site):
    """The server serves exactly the allowed number of requests, whichever workers receive them."""
    site.add("index.html", "index")
    server = limited("Requests 200/d by all\nRequests /x 100/d by address", workers=4)
    with ThreadPoolExecutor(8) as pool:
        statuses = sum(pool.map(lambda _: ask(server, n=40), range(8)), [])
    assert (statuses.count(200), statuses.count(429)) == (200, 120)
    answered = [int(line.split()[-1]) for line in Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()]
    assert len(answered) == 4


def test_limits_counters_survive_reload_and_crash(limited, site):
    site.add("index.html", "index")
    server = limited("Requests 4/d")
    assert ask(server, n=2) == [200, 200]
    server.config.write_text(server.config.read_text() + "\n[HOST]\n    ServerName new.example\n    DocumentRoot site\n")
    before = server.workers
    server.tell(signal.SIGHUP)
    end = time.monotonic() + SECONDS
    while set(server.workers) & set(before):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert ask(server, n=1) == [200]
    server.allow(r"worker \d+ was killed by signal 9")
    victim = server.workers[0]
    os.kill(victim, signal.SIGKILL)
    server.err.wait_for(rf"worker {victim} was killed by signal 9")
    assert ask(server, n=2) == [200, 429]


def test_limits_client_that_waits_is_served_again(limited, site):
    """The client must be served again, but not more often than allowed."""
    site.add("index.html", "index")
    server = limited("Requests 20/s burst 1", server="KeepAliveRequests 0")
    served, end = 0, time.monotonic() + SECONDS
    with server.connect() as c:
        while c.get("/").status != 200:
            pass
        began = time.monotonic()
        while served < 20:
            served += c.get("/").status == 200
            assert time.monotonic() < end
    assert time.monotonic() - began > 0.9 * 20 / 20


def test_limits_dry_run_only_logs(limited, site):
    site.add("index.html", "index")
    site.add("large", "x" * 300_000)
    server = limited("Requests / 2/d\nBandwidth 1K\nDryRun on")
    assert ask(server, n=20) == [200] * 20
    assert ask(server, "/large") == [200]
    server.err.wait_for(r"GET / from 127\.0\.0\.1: limits: would be rejected \(429\) by `/ 2/d` \(1 times recently\)")
    assert server.err.text.count("limits:") < 18


def test_limits_refusals_are_logged_with_rate_limit(limited, site):
    server = limited("Requests 1/d")
    with server.connect() as c:
        for _ in range(300):
            c.get("/x")
    server.err.wait_for(r"GET /x from 127\.0\.0\.1: limits: rejected \(429\) by `1/d` \(1 times recently\)")
    server.stop()
    assert server.err.text.count("limits:") < 100


def test_limits_429_page_is_that_of_the_host(limited, site):
    site.add("429.html", "slow down")
    server = limited("Requests 1/d", sections="[ERROR_PAGES]\n    429 429.html\n")
    with server.connect() as c:
        c.get("/")
        assert c.get("/").text == "slow down"


# ---- Bandwidth ----

CONTENT = bytes(range(256)) * 1200  # 300 KB


def fetch(server, target="/a.iso", source=None, **how):
    with server.connect(source=source) as c:
        began = time.monotonic()
        reply = c.get(target, **how)
        return reply, time.monotonic() - began


@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_bandwidth_limit_applies(limited, site, version):
    site.add("a.iso", CONTENT)
    site.add("b.txt", CONTENT)
    server = limited("Bandwidth *.iso 200K burst 20K")
    reply, seconds = fetch(server, version=version)
    assert reply.body == CONTENT and reply["Content-Length"] == str(len(CONTENT))
    assert seconds > 0.9 * (len(CONTENT) / 1024 - 20 - 200 / 16) / 200
    reply, _ = fetch(server, "/b.txt")
    assert reply.body == CONTENT


def test_bandwidth_limit_lets_the_loop_sleep(limited, site):
    """A response with limited bandwidth wakes its worker at most once per portion."""
    site.add("a.iso", CONTENT)
    server = limited("Bandwidth *.iso 200K burst 12K")
    before = sleeps(server.workers[0])
    reply, seconds = fetch(server)
    assert reply.body == CONTENT
    assert sleeps(server.workers[0]) - before <= len(CONTENT) / (200 * 1024 / 16) + 2 * seconds + 15


def test_bandwidth_limit_does_not_delay_small_bodies(limited, site):
    site.add("a.iso", "x" * 1000)
    server = limited("Bandwidth *.iso 100K")
    with server.connect() as c:
        for _ in range(100):
            assert c.get("/a.iso").text == "x" * 1000  # each response has its own limit
        assert c.get("/a.iso", method="HEAD").status == 200
        assert c.get("/a.iso", fields={"Range": "bytes=5-9"}).text == "xxxxx"
        assert c.get("/none.iso").status == 404


def test_bandwidth_limit_starts_after_free_bytes(limited, site):
    site.add("a.iso", CONTENT)
    server = limited("Bandwidth *.iso 1K burst 1K after 290K")
    with server.connect() as c:
        c.ask("/a.iso")
        c.read_head()
        assert c.read_exactly(290 * 1024) == CONTENT[:290 * 1024]
    server = limited("Bandwidth *.iso 1K after 1M")
    assert fetch(server)[0].body == CONTENT


def test_bandwidth_by_address_is_shared_by_its_connections(limited, site):
    """The connections of an address share its bandwidth over all workers; other addresses have their own bandwidth."""
    site.add("a.iso", CONTENT)
    server = limited("Bandwidth *.iso 400K burst 1K by address", workers=2)
    began = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda i: fetch(server, source=f"127.0.0.{1 + i % 2}"), range(4)))
    assert all(reply.body == CONTENT for reply, _ in replies)
    assert time.monotonic() - began > 0.9 * (2 * len(CONTENT) / 1024 - 1 - 2 * 400 / 16) / 400


def test_bandwidth_by_path_is_shared_by_all_clients(limited, site):
    site.add("a.iso", CONTENT)
    server = limited("Bandwidth *.iso 400K burst 1K by path")
    began = time.monotonic()
    with ThreadPoolExecutor(3) as pool:
        replies = list(pool.map(lambda i: fetch(server, source=f"127.0.0.{1 + i}"), range(3)))
    assert all(reply.body == CONTENT for reply, _ in replies)
    assert time.monotonic() - began > 0.9 * (3 * len(CONTENT) / 1024 - 1 - 3 * 400 / 16) / 400


def test_bandwidth_sharing_starves_no_response(limited, site):
    """Every response gets its share: a small one does not wait for the end of the large ones."""
    site.add("a.iso", CONTENT * 10)
    site.add("small.iso", "x" * 20000)
    server = limited("Bandwidth *.iso 200K burst 1K by address", workers=1)
    large = server.connect()
    large.ask("/a.iso")
    large.read_head()
    for _ in range(3):
        assert fetch(server, "/small.iso")[0].text == "x" * 20000
    large.close()


def test_bandwidth_not_used_is_returned(limited, site):
    """A client that disconnects early does not use up the bandwidth of others."""
    site.add("a.iso", CONTENT)
    server = limited("Bandwidth *.iso 64K burst 64K by all")
    for _ in range(300):
        with server.connect() as c:
            c.ask("/a.iso", fields={"Range": "bytes=0-0"})
            assert c.read().body == CONTENT[:1]


def test_bandwidth_strictest_matching_rule_applies(limited, site):
    site.add("a.iso", CONTENT)
    server = limited("Bandwidth *.iso 10M by address\nBandwidth /* 200K burst 1K\nBandwidth 100M by all")
    reply, seconds = fetch(server)
    assert reply.body == CONTENT
    assert seconds > 0.9 * (len(CONTENT) / 1024 - 1 - 200 / 16) / 200


def test_bandwidth_state_of_disconnected_clients_is_freed(limited, site):
    site.add("a.iso", CONTENT)
    server = limited("Bandwidth *.iso 1K")
    clients = [server.connect() for _ in range(20)]
    for c in clients:
        c.ask("/a.iso")
    for c in clients:
        c.read_head()
        c.close()
    assert fetch(server, "/none")[0].status == 404


def test_bandwidth_delay_does_not_count_as_handler_time(limited, site):
    """HandlerTimeout must not end a response that waits for bandwidth."""
    site.add("a.iso", CONTENT[:8 * 1024])
    server = limited("Bandwidth *.iso 2K burst 1K", server="HandlerTimeout 2")
    assert fetch(server)[0].body == CONTENT[:8 * 1024]


def test_bandwidth_delay_does_not_block_stop(limited, site):
    site.add("a.iso", CONTENT)
    server = limited("Bandwidth *.iso 1K")
    with server.connect() as c:
        c.ask("/a.iso")
        c.read_head()
        server.stop()


# ---- Configuration ----

WRONG = {
    "Requests 10": "`10` is not a rate: expected 10/s",
    "Requests 10/x": "`10/x` is not a rate",
    "Requests 0/s": "`0/s` is not a rate",
    "Requests 10001/s": "at most 10000 a second",
    "Requests /x": "NUMBER/s|m|h|d",
    "Requests 1/s 2/s": "`2/s` is unknown here: expected burst, by or when",
    "Requests 1/s burst": "`burst` is the last word",
    "Requests 1/s burst 0": "`0` is not a burst",
    "Requests 1/h burst 100": "`100` is too large: expected a burst that the rate makes up for within a day",
    "Requests 1/s burst 2 burst 3": "`burst` is already set",
    "Requests 1/s by": "`by` is the last word",
    "Requests 1/s by moon": "`moon` is not a key to count by: expected address, path, all or header",
    "Requests 1/s by response": "`response` is not a key to count by",
    "Requests 1/s by header": "`header` is the last word",
    "Requests 1/s by header X:": "`X:` is not the name of a header",
    "Requests 1/s by all address": "`address` is one too many",
    "Requests 1/s after 1M": "`after` is unknown here",
    "Bandwidth 10/s": "`10/s` is not a bandwidth: expected bytes a second",
    "Bandwidth 100": "`100` is not a bandwidth",
    "Bandwidth 2048G": "`2048G` is not a bandwidth",
    "Bandwidth /x": "[by response|address",
    "Bandwidth 1K burst 1G": "`1G` is not a burst: expected a size that is sent within a day",
    "Bandwidth 1M after x": "`x` is not a size",
    "Bandwidth 1M by moon": "expected response, address, path, all or header",
    "Except nobody": "`nobody` is neither a path nor a network",
    "DryRun maybe": "on or off",
    "Request 1/s": "did you mean `Requests`",
}


@pytest.mark.parametrize("line", WRONG)
def test_limits_invalid_configuration_is_rejected_with_location(limited, line):
    server = limited(line, expect_start=False)
    server.exit_code = 3
    server.wait()
    number = re.search(r"monkey\.conf:(\d+):\d+: error: ", server.err.text)
    assert number and WRONG[line] in server.err.text, server.err.text
    assert line in server.config.read_text().splitlines()[int(number[1]) - 1]


def run(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_limits_appear_in_printed_config(limited):
    server = limited("Requests  /api/* /x 10/s burst 20 by address header X-Api-Key\nRequests 1/d\nBandwidth *.iso 500K\n"
                     "Except 10.0.0.0/8 ::1\nExcept /health")
    text = run("-T", "-c", server.config)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    at = lines.index("[LIMITS]")
    assert lines[at + 1:at + 8] == [
        "Requests /api/* /x 10/s burst 20 by address header X-Api-Key", "Requests 1/d", "Bandwidth *.iso 500K",
        "Except 10.0.0.0/8", "Except ::1", "Except /health", "DryRun off"]


def test_limits_appear_in_explain(limited, site):
    site.add("a.iso", CONTENT)
    server = limited("Requests /* 10/s\nBandwidth *.iso 500K\nRequests /api/* 1/d")
    output = run("explain", "-c", server.config, "GET", "/a.iso")
    assert re.findall(r"^rate +(.+)$", output, re.M) == ["Requests /* 10/s", "Bandwidth *.iso 500K"]


# ---- Under pressure ----


def test_limits_many_new_clients_lock_nobody_out(limited, site):
    """Each key represents a client: the server limits far more clients than fit into one hash bucket."""
    site.add("index.html", "index")
    server = limited("Requests 1/d by header Key", server="KeepAliveRequests 0")
    with server.connect() as c:
        for at in range(0, 4000, 50):
            c.send(b"".join(b"GET / HTTP/1.1\r\nHost: x\r\nKey: %d\r\n\r\n" % key for key in range(at, at + 50)))
            assert [c.read("GET").status for _ in range(50)] == [200] * 50
    assert ask(server, fields={"Key": "3999"}) == [429]


def test_limits_race_of_new_client_admits_at_most_two(limited, site):
    site.add("index.html", "index")
    server = limited("Requests 1/d by header Key", workers=4)
    barrier = threading.Barrier(6)

    def send_requests(_):
        statuses = []
        for key in range(30):
            with server.connect() as c:
                barrier.wait(SECONDS)
                statuses.append(c.get("/", fields={"Key": f"k{key}"}).status)
        return statuses

    with ThreadPoolExecutor(6) as pool:
        rounds = list(zip(*pool.map(send_requests, range(6))))
    # Two workers may insert a new client at the same instant, into separate slots: then both requests are served.
    assert all(1 <= each.count(200) <= 2 and each.count(429) >= 4 for each in rounds), rounds
