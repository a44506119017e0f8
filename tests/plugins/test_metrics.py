# SPDX-License-Identifier: Apache-2.0
"""The metrics plugin: its counters, access control, and the live page."""
import json
import os
import re
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest

from client import Closed
from metering import KEYS, Stream, history, starter, status, taken
from monkey import PROGRAM, ROOT
from proc import wait_until
from prometheus import parse

VIEWS = ["/metrics", "/status", "/live", "/healthz", "/readyz"]


@pytest.fixture
def start(monkey, site):
    return starter(monkey, site)


def numbers(server, path="/metrics"):
    reply = server.get(path)
    assert reply.status == 200 and reply["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert reply["Cache-Control"] == "no-store"
    return parse(reply.text)


def counted(server, code, times):
    """Returns the numbers after `times` requests: with several workers, a response may arrive before its request is counted."""
    return wait_until(lambda: (n := numbers(server))["monkey_http_requests_total", {"code": code}] >= times and n,
                      f"{times} requests of status {code}")


# ---- Counting ----


def test_metrics_count_requests_by_method_and_status(start):
    server = start()
    with server.connect() as c:
        for _ in range(5):
            assert c.get("/").status == 200
        assert c.get("/", method="HEAD").status == 200
        assert c.get("/none").status == 404
        assert c.get("/", method="POST", body=b"x").status == 405
        assert c.get("/", method="BREW").status == 501
        tag = c.get("/")["ETag"]
        assert c.get("/", fields={"If-None-Match": tag}).status == 304
    assert server.send(b"GET / HTTP/1.1\r\n\r\n").status == 400
    n = numbers(server)
    found = {(labels["method"], labels["code"]): value for labels, value in n.all("monkey_http_requests_total")}
    assert found.pop(("other", "400"), 0) + found.pop(("GET", "400"), 0) == 1
    assert found == {("GET", "200"): 6, ("HEAD", "200"): 1, ("GET", "404"): 1, ("POST", "405"): 1, ("other", "501"): 1,
                     ("GET", "304"): 1}
    assert n["monkey_http_outcomes_total", {"outcome": "rejected"}] == 1
    assert n["monkey_http_outcomes_total"] == n["monkey_http_request_duration_seconds_count"] == 12
    assert n["monkey_http_requests_total", {"host": "other"}] == 12
    assert n["monkey_event_loop_iteration_seconds_count"] > 0
    assert numbers(server)["monkey_http_requests_total"] == 13, "the scrape counts itself, but only after its end"


def test_metrics_bytes_count_bodies(start, site):
    site.add("big", os.urandom(1 << 20))
    server = start()
    assert len(server.get("/big").body) == 1 << 20
    assert numbers(server)["monkey_http_response_bytes_total"] == 1 << 20
    assert status(server)["requests"]["bytes"] > 1 << 20


def test_metrics_count_disconnected_clients(start, site):
    site.add("big", bytes(32 << 20))
    server = start()
    with server.connect(receive_buffer=4096) as c:
        c.ask("/big").read_head()
        # Sends an RST, as a browser does when it is closed during a response.
        c.sock.setsockopt(1, 13, struct.pack("ii", 1, 0))
    wait_until(lambda: numbers(server)["monkey_http_outcomes_total", {"outcome": "client_aborted"}] == 1, "the disconnect to be noticed")


def test_metrics_durations_fall_into_correct_buckets(start, site):
    site.add("big", bytes(32 << 20))
    server = start()
    with server.connect() as c:
        for _ in range(20):
            c.get("/")
    with server.connect(receive_buffer=4096) as c:
        c.ask("/big").read_head()
        time.sleep(1.2)  # a lower bound: the request lasts until the kernel has accepted the whole response
        c.read_exactly(32 << 20)
    bucket = "monkey_http_request_duration_seconds_bucket"
    n = wait_until(lambda: (n := numbers(server))[bucket, {"le": "+Inf"}] - n[bucket, {"le": "1.048576"}] == 1 and n, "it")
    assert n[bucket, {"le": "1.048576"}] >= 20
    assert 1.2 < n["monkey_http_request_duration_seconds_sum"] < 30
    latency = status(server)["latency_us"]
    assert 0 < latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["p999"]
    assert latency["p90"] < 1_048_576 and latency["p999"] > 1_200_000
    assert sum(count for _, count in latency["histogram"]) == latency["count"]
    ends = [end for end, _ in latency["histogram"]]
    assert ends == sorted(ends) and latency["p999"] <= ends[-1]


def test_metrics_of_all_workers_are_summed(start):
    server = start(workers=3)
    for _ in range(60):
        server.get("/")
    n = counted(server, "200", 60)
    assert 60 <= n["monkey_http_requests_total", {"code": "200"}] < 70

    def agree():
        seen = status(server)
        return sum(w["requests"] for w in seen["workers"]) == seen["requests"]["total"]

    wait_until(agree, "equal totals of both views")
    assert len([w for w in status(server)["workers"] if w["requests"]]) > 1, "one worker handled everything"


def test_metrics_never_decrease_on_reload_or_worker_death(start):
    server = start(workers=2)
    server.allow(r"worker \d+ was killed by signal")
    before = {}
    for round_ in range(1, 4):
        for _ in range(10):
            server.get("/")
            server.get("/none")
        after = counted(server, "404", 10 * round_)
        lost = [key for key, value in before.items() if "pid" not in dict(key[1]) and after.counters.get(key, -1) < value]
        assert not lost
        assert after["monkey_http_requests_total", {"code": "404"}] == 10 * round_
        assert after["monkey_config_reloads_total"] == round_ - 1
        before = after.counters
        server.tell(signal.SIGHUP)
        server.err.wait_for("the new configuration serves", count=round_)
    victim = server.workers[0]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: victim not in server.workers and len(server.workers) >= 2, "its replacement")
    after = counted(server, "404", 30)
    assert after["monkey_http_requests_total", {"code": "404"}] == 30
    assert after["monkey_config_reloads_total"] == 3, "a replaced worker is not a reload"
    assert time.time() - after["monkey_config_last_reload_success_timestamp_seconds"] < 60


def test_metrics_do_not_count_rejected_configuration_as_reload(start):
    server = start()
    good = server.config.read_text()
    server.config.write_text(good + "\n[NONSENSE]\n    a b\n")
    server.tell(signal.SIGHUP)
    server.err.wait_for("NONSENSE")
    server.config.write_text(good)
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    assert numbers(server)["monkey_config_reloads_total"] == 1


def test_metrics_have_no_series_of_rejected_configuration(start):
    server = start("    ByHost on\n")
    good = server.config.read_text()
    host = "\n[HOST]\n    ServerName refused.example\n    DocumentRoot .\n"
    server.config.write_text(good + host + "\n[NONSENSE]\n    a b\n")
    server.tell(signal.SIGHUP)
    server.err.wait_for("NONSENSE")
    assert "refused.example" not in server.get("/metrics").text
    server.config.write_text(good + host)
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    assert "refused.example" in server.get("/metrics").text


def test_metrics_survive_a_change_of_worker_count(start):
    server = start(workers=1)
    for _ in range(5):
        server.get("/none")
    server.config.write_text(server.config.read_text().replace("Workers 1", "Workers 3"))
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    assert counted(server, "404", 5)["monkey_http_requests_total", {"code": "404"}] == 5


def test_metrics_count_many_new_statuses_at_once(monkey, site):
    """There are more statuses than columns: the surplus is counted as `other`."""
    site.add("index.html", "hello")
    codes = [c for c in range(400, 600) if c not in (405, 407, 426)][:90]
    routes = "".join(f"    /{code} status {code}\n" for code in codes)
    server = monkey(plugins=["metrics"], top=KEYS, sections=f"[ROUTES]\n{routes}    /* static\n")
    answered = {code: server.get(f"/{code}").status for code in codes}
    n = numbers(server)
    assert n["monkey_http_requests_total"] == len(codes)
    found = {labels["code"]: value for labels, value in n.all("monkey_http_requests_total")}
    assert len(found) == 63 and found.pop("other") == len(codes) - 62
    assert all(answered[int(code)] == int(code) and value == 1 for code, value in found.items())
    assert status(server)["requests"]["by_status"]["other"] == len(codes) - 62 + 1


# ---- Workers and memory ----


def test_metrics_show_kernel_statistics_of_workers(start):
    server = start(workers=2)
    workers = wait_until(lambda: all("rss" in w for w in status(server)["workers"]) and status(server)["workers"],
                         "measurements of all workers")
    # After the start, the master may have another child, which lists certificates.
    wait_until(lambda: {w["pid"] for w in workers} == set(server.workers), "no other children")
    for w in workers:
        text = Path(f"/proc/{w['pid']}/smaps_rollup").read_text()
        rss = int(re.search(r"^Rss: +(\d+)", text, re.MULTILINE)[1]) << 10
        assert rss / 3 < w["rss"] < rss * 3, "available inside the sandbox, too"
        assert 0 < w["pss"] <= w["rss"]
        assert w["state"] == "serving" and abs(w["started"] - time.time()) < 60
        fields = Path(f"/proc/{w['pid']}/stat").read_text().rpartition(")")[2].split()
        assert 0 < w["cpu_us"] <= (int(fields[11]) + int(fields[12]) + 2) * 1e6 / os.sysconf("SC_CLK_TCK")
    n = numbers(server)
    assert {int(labels["pid"]) for labels, _ in n.all("monkey_worker_proportional_bytes")} == {w["pid"] for w in workers}
    assert all(0 < seconds < 60 for _, seconds in n.all("monkey_worker_cpu_seconds_total"))
    assert n["monkey_workers", {"state": "serving"}] == 2 and n["monkey_workers", {"state": "draining"}] == 0
    assert abs(n["monkey_start_time_seconds"] - time.time()) < 60
    assert n["monkey_build_info", {"version": status(server)["version"]}] == 1


def test_metrics_memory_of_worker_is_current(start, site):
    """A worker measures itself within a second after its last request, even without a scrape."""
    server = start(server="InlineFileMax 60K\n")
    for i in range(20):
        site.add(f"f{i}", os.urandom(50_000))
    before = status(server)["workers"][0]["cache_bytes"]
    for i in range(20):
        server.get(f"/f{i}")
    assert wait_until(lambda: status(server)["workers"][0]["cache_bytes"], "files to be in the cache") > before


def test_metrics_connections_gauge_is_current(start):
    server = start()
    before = numbers(server)
    clients = [server.connect() for _ in range(7)]
    for c in clients:
        c.get("/")
    assert numbers(server)["monkey_worker_accepted_total"] == before["monkey_worker_accepted_total"] + 8
    during = wait_until(lambda: (n := numbers(server))["monkey_connections"] == 8 and n, "the end of the earlier connections")
    assert during["monkey_worker_connections"] == 8
    for c in clients:
        c.close()
    wait_until(lambda: numbers(server)["monkey_connections"] == 1, "the connections to end")


# ---- Access control ----


@pytest.mark.parametrize("path", VIEWS + ["/live?events", "/live?script"])
def test_metrics_refuse_addresses_outside_of_allow(start, path):
    server = start("    Allow 192.0.2.0/24 2001:db8::/32\n")
    assert server.get(path).status == 403
    assert server.get("/").status == 200


def test_metrics_allow_loopback_and_unix_sockets_by_default(start, tmp_path):
    server = start(listen=["127.0.0.1:0", "[::1]:0", f"unix:{tmp_path}/s"])
    for listener in range(3):
        assert server.get("/status", listener=listener).status == 200


@pytest.mark.parametrize("host, status", [
    ("evil.example", 403), ("127.0.0.1.evil.example", 403), ("localhost.evil.example", 403), ("example.org", 403),
    ("localhost", 200), ("LOCALHOST.", 200), ("localhost:8080", 200), ("127.0.0.1", 200), ("[::1]:1", 200),
    ("mine.example", 200), ("a.wild.example", 200), ("wild.example", 403)])
def test_metrics_on_loopback_require_a_known_host_name(start, tmp_path, host, status):
    server = start(host="ServerName mine.example *.wild.example", listen=["127.0.0.1:0", "[::1]:0", f"unix:{tmp_path}/s"])
    for listener in range(3):
        for path in ("/metrics", "/status", "/live", "/live?events", "/live?script"):
            with server.connect(listener) as c:
                assert c.ask(path, "HEAD", fields={"Host": host}).read("HEAD").status == status, (listener, path)
        assert server.get("/healthz", listener=listener, fields={"Host": host}).status == 200
    if status == 403:
        server.err.wait_for("metrics: access from loopback requires a local Host header or a ServerName")


def test_metrics_allow_all_accepts_every_host_name(start):
    server = start("    Allow all\n")
    assert server.get("/status", fields={"Host": "evil.example"}).status == 200


def test_metrics_allow_health_extends_access(start):
    server = start("    Allow 192.0.2.1\n    AllowHealth 198.51.100.0/24\n    AllowHealth 127.0.0.1\n")
    assert [server.get(path).status for path in VIEWS] == [403, 403, 403, 200, 200]


def test_metrics_ignore_forwarded_headers(start):
    server = start("    Allow 192.0.2.1\n")
    assert server.get("/status", fields={"X-Forwarded-For": "192.0.2.1", "Forwarded": "for=192.0.2.1"}).status == 403


def test_metrics_routes_without_section_are_for_loopback(monkey, site):
    server = monkey(plugins=["metrics"], sections="[ROUTES]\n    /m metrics\n    /s metrics json\n    /p metrics PAGE\n"
                    "    /h metrics health\n    /r metrics ready\n    /t metrics prometheus\n    /* static\n")
    assert [server.get(path).status for path in ("/m", "/s", "/p", "/h", "/r", "/t")] == [200] * 6
    assert parse(server.get("/m").text) and parse(server.get("/t").text)["monkey_http_requests_total"] == 7
    assert server.get("/metrics").status == 404, "no route was configured"


def test_metrics_explicit_routes_precede_routes_of_keys(start, site):
    server = start(sections="[ROUTES]\n    /status status 451\n    /* static\n")
    assert server.get("/status").status == 451
    assert server.get("/metrics").status == 200, "static found no file and declined"
    site.add("metrics", "a file")
    assert server.get("/metrics").text == "a file"


def test_metrics_routes_of_keys_precede_files(start, site):
    for name in ("healthz", "status"):
        site.add(name, "a file")
    server = start(host="Fallback index.html")
    assert server.get("/healthz").text != "a file" and status(server)
    assert server.get("/metrics").status == 200
    assert server.get("/elsewhere").text == "hello", "the fallback handles the other paths"


@pytest.mark.parametrize("path", VIEWS)
def test_metrics_accept_only_get_and_head(start, path):
    server = start()
    assert server.get(path, method="POST", body=b"x").status == 405
    assert server.get(path, method="DELETE").status == 405
    reply = server.get(path, method="HEAD")
    assert reply.status == 200 and not reply.body
    assert reply["Content-Type"] == server.get(path)["Content-Type"]


# ---- Hosts ----


def test_metrics_hosts_beyond_limit_are_reported_and_served(monkey, site):
    site.add("index.html", "hello")
    hosts = "".join(f"[HOST]\n    ServerName h{i}.example\n    DocumentRoot {site}\n" for i in range(1000))
    server = monkey(plugins=["metrics"], root=None, top="[METRICS]\n    ByHost on\n    Metrics /metrics\n", sections=hosts, workers=1)
    server.err.wait_for("too many metrics")
    for host in ("h0.example", "h999.example", "h0.example"):
        assert server.get("/", fields={"Host": host}).text == "hello"
    n = parse(server.get("/metrics", fields={"Host": "h0.example"}).text)
    assert n["monkey_http_response_bytes_total", {"host": "h0.example"}] == 10
    assert not [1 for labels, _ in n.all("monkey_http_response_bytes_total") if labels["host"] == "h999.example"]
    server.err.wait_for("some requests are not counted")


def test_metrics_by_host_counts_hosts_separately(monkey, site):
    site.add("index.html", "hello")
    server = monkey(plugins=["metrics"], root=None, top="[METRICS]\n    ByHost on\n    Metrics /metrics\n    Status /status\n",
                    sections=f"""
[HOST]
    ServerName one.example www.one.example
    DocumentRoot {site}
[HOST]
    ServerName two.example
    DocumentRoot {site}
[HOST]
    ServerName quiet.example
    DocumentRoot {site}
[METRICS]
    Count off
""")
    for host, times in (("one.example", 2), ("www.one.example", 3), ("two.example", 4), ("quiet.example", 5)):
        for _ in range(times):
            assert server.get("/", fields={"Host": host}).status == 200
    assert server.get("/metrics", fields={"Host": "quiet.example"}).status == 404, "its own section adds no route"
    reply = server.get("/metrics", fields={"Host": "two.example"})
    n = parse(reply.text)
    assert n["monkey_http_requests_total", {"host": "one.example"}] == 5
    assert n["monkey_http_requests_total", {"host": "two.example"}] == 4
    assert n["monkey_http_requests_total"] == 9
    hosts = json.loads(server.get("/status", fields={"Host": "one.example"}).text)["hosts"]
    assert [(h["name"], h["requests"]) for h in hosts] == [("one.example", 5), ("two.example", 5)]


# ---- Health and readiness ----


def test_metrics_healthz_and_readyz_respond(start):
    server = start()
    assert (server.get("/healthz").text, server.get("/readyz").text) == ("ok\n", "ready\n")


def test_metrics_not_ready_file_makes_server_unready(start, tmp_path):
    server = start("    NotReadyFile down\n")
    assert server.get("/readyz").status == 200
    (tmp_path / "down").touch()
    reply = server.get("/readyz")
    assert (reply.status, reply.text) == (503, "not ready: taken out of service\n")
    assert server.get("/healthz").status == 200 and server.get("/").status == 200
    (tmp_path / "down").unlink()
    assert server.get("/readyz").status == 200


def test_metrics_ready_connections_limit_makes_server_unready(start):
    server = start("    ReadyConnections 3\n")
    clients = [server.connect() for _ in range(3)]
    for c in clients:
        c.get("/")
    reply = server.get("/readyz")
    assert (reply.status, reply.text) == (503, "not ready: too many connections\n")
    clients.pop().close()
    wait_until(lambda: server.get("/readyz").status == 200, "it to be ready again")


def is_refused(server):
    try:
        server.connect().close()
    except ConnectionRefusedError:
        return True
    return False


def test_metrics_draining_server_is_unready(start):
    server = start()
    with server.connect() as c:
        c.get("/")
        c.send(b"GET /readyz HTTP/1.1\r\nHost: x\r\n")
        server.tell(signal.SIGQUIT)
        wait_until(lambda: is_refused(server), "new connections to be refused")
        reply = c.send(b"\r\n").read()
        assert (reply.status, reply.text) == (503, "not ready: draining\n")
    server.wait()


# ---- Invalid configuration ----

MISTAKES = [
    ("Allow 10.0.0.1/8", "`10.0.0.1/8`"),
    ("Allow localhost", "expected an address, a network, `unix:` or `all`, not `localhost`"),
    ("AllowHealth 1.2.3.4 5.6.7", "not `5.6.7`"),
    ("Metrics metrics", "expected a path pattern, such as `/status`, not `metrics`"),
    ("Live", "`Live` has no value"),
    ("MaxViewers 1001", "`1001` is too large"),
    ("MaxViewers many", "expected a number"),
    ("Count perhaps", "expected on or off"),
    ("Statsu /s", "did you mean `Status`?"),
    ("Status /a\n    Status /b", "`Status` is already set"),
]


@pytest.mark.parametrize("line,message", MISTAKES)
def test_metrics_invalid_configuration_is_rejected_with_location(monkey, line, message):
    server = monkey(plugins=["metrics"], top=f"[METRICS]\n    {line}\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert message in server.err.text
    assert re.search(r"monkey\.conf:\d+:\d+: error: ", server.err.text)


def test_metrics_route_with_unknown_view_is_rejected(monkey):
    server = monkey(plugins=["metrics"], sections="[ROUTES]\n    /m metrics xml\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "expects [prometheus|json|page|health|ready]" in server.err.text


def test_metrics_shipped_config_loads(monkey):
    server = monkey(plugins=["metrics"], top=f"@INCLUDE {ROOT}/plugins/metrics/metrics.conf\n")
    assert [server.get(path).status for path in VIEWS] == [200] * 5


def test_metrics_printed_config_loads_again(start, tmp_path):
    server = start("    Allow 10.0.0.0/8 ::1\n    NotReadyFile down\n    ByHost on\n")
    text = subprocess.run([PROGRAM, "-T", "-c", server.config], capture_output=True, text=True, check=True).stdout
    again = tmp_path / "again.conf"
    again.write_text(text)
    more = subprocess.run([PROGRAM, "-T", "-c", again], capture_output=True, text=True, check=True).stdout
    assert more == text and re.search(r"Allow +10\.0\.0\.0/8", text) and re.search(r"Live +/live", text)


# ---- Events ----


def test_live_page_sends_one_event_per_second(start):
    server = start()
    began = time.monotonic()
    with Stream(server) as stream:
        assert stream.head.status == 200 and stream.head["Content-Type"] == "text/event-stream"
        assert "no-store" in stream.head["Cache-Control"]
        first = stream.next()
        server.get("/")
        server.get("/")
        second, third = stream.next(), stream.next()
        assert 1.5 < time.monotonic() - began < 10
    # The second event may be sent before, between or after the two requests.
    assert first["requests"]["total"] <= second["requests"]["total"] <= third["requests"]["total"]
    assert third["requests"]["total"] == first["requests"]["total"] + 2
    assert 900 <= third["now_ms"] - second["now_ms"] < 5000


def by_time(found):
    return dict(zip(found["now_ms"], zip(found["requests"], found["connections"], found["2xx"])))


FIELDS = {"requests", "bytes", "connections", "memory", "none", "1xx", "2xx", "3xx", "4xx", "5xx", "p50", "p90", "p99", "p999"}


def test_live_page_first_event_has_history(start):
    server = start()
    for _ in range(20):
        server.get("/")
        server.get("/none")
    found = history(server, lambda h: len(h["now_ms"]) >= 3 and h["4xx"][-1] == 20)
    assert set(found) == FIELDS | {"now_ms", "durations", "histogram"}
    times = found["now_ms"]
    assert times == sorted(times) and len({t // 1000 for t in times}) == len(times), "one sample per second"
    assert all(len(found[field]) == len(times) for field in FIELDS)
    for field in ("requests", "bytes", "2xx"):
        assert found[field] == sorted(found[field])
    assert found["requests"][-1] >= 40 and found["2xx"][-1] >= 20 and found["5xx"][-1] == 0
    assert found["memory"][-1] > 1 << 20
    assert max(found["p50"]) > 0 and all(a <= b for a, b in zip(found["p50"], found["p999"]))
    assert [at for at, _ in found["durations"]] == times
    summed = {}
    for _, buckets in found["durations"]:
        for end, n in buckets:
            summed[end] = summed.get(end, 0) + n
    assert summed == dict(map(tuple, found["histogram"])) and sum(summed.values()) >= 40


def test_live_page_history_is_equal_in_all_workers(start):
    server = start(workers=3)
    for _ in range(10):
        server.get("/")
    history(server, lambda h: len(h["now_ms"]) >= 3)
    streams = [Stream(server) for _ in range(12)]
    taken_by = set()
    for stream in streams:
        taken_by |= {w["pid"] for w in stream.next()["workers"] if w["connections"]}
        stream.__exit__()
    assert len(taken_by) > 1, "one worker serves all the streams"
    first = by_time(streams[0].history)
    for stream in streams[1:]:
        other = by_time(stream.history)
        common = first.keys() & other.keys()
        assert len(common) >= 3 and all(first[t] == other[t] for t in common)


@pytest.mark.parametrize("workers", [1, 2])
def test_live_page_history_survives_reload(start, workers):
    server = start(workers=workers)
    for _ in range(5):
        server.get("/none")
    before = history(server, lambda h: len(h["now_ms"]) >= 2 and h["4xx"][-1] == 5)
    old = set(server.workers)
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    wait_until(lambda: not old & set(server.workers), "the old workers to end")
    again = history(server)
    assert by_time(before).items() <= by_time(again).items()
    more = history(server, lambda h: len(h["now_ms"]) >= len(again["now_ms"]) + 2)
    assert by_time(again).items() <= by_time(more).items() and more["4xx"][-1] == 5


def test_live_page_history_survives_death_of_its_writer(start):
    server = start(workers=2)
    server.allow(r"worker \d+ was killed by signal")
    history(server, lambda h: len(h["now_ms"]) >= 2)
    before = None
    for victim in server.workers:  # one of the two workers writes the history
        before = history(server)
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: victim not in server.workers and len(server.workers) == 2, "its replacement")
        after = history(server, lambda h: len(h["now_ms"]) >= len(before["now_ms"]) + 2)
        assert by_time(before).items() <= by_time(after).items()


def test_live_page_history_starts_empty_on_new_server(start):
    server = start()
    seen = history(server, lambda h: len(h["now_ms"]) >= 3)["now_ms"]
    server.stop()
    assert not set(seen) & set(history(start())["now_ms"])


def test_live_page_streams_do_not_count_in_latency(start):
    server = start()
    with Stream(server) as stream:
        stream.next()
        stream.next()
    wait_until(lambda: status(server)["requests"]["by_outcome"]["client_aborted"] == 1, "the end of the stream to be noticed")
    latency = status(server)["latency_us"]
    assert latency["p999"] < 900_000
    assert latency["count"] == status(server)["requests"]["total"] - 2  # without the stream and the previous status request


def test_live_page_viewers_are_limited(start):
    server = start("    MaxViewers 2\n")
    with Stream(server) as first, Stream(server) as second:
        assert first.next() and second.next()
        reply = server.get("/live?events")
        assert reply.status == 503 and reply["Retry-After"] == "10"
        assert server.get("/live").status == 200
        assert first.next() and second.next(), "the other streams continue"
    wait_until(lambda: server.get("/live?events", method="HEAD").status == 200, "")
    wait_until(lambda: watches(server), "a free viewer slot")


def watches(server):
    with server.connect() as c:
        return c.ask("/live?events").read_head().status == 200


def test_live_page_viewers_may_be_off(start):
    assert start("    MaxViewers off\n").get("/live?events").status == 503


def test_live_page_many_viewers_come_and_go(start):
    server = start("    MaxViewers 100\n")
    for _ in range(3):
        streams = [Stream(server) for _ in range(60)]
        assert len({stream.next()["now_ms"] for stream in streams}) < 60, "viewers share their events"
        for stream in streams[::2]:
            stream.__exit__()
        assert all(stream.next() for stream in streams[1::2])
        for stream in streams[1::2]:
            stream.__exit__()
    assert server.get("/").status == 200


def test_live_page_slow_viewer_skips_events(start):
    """The viewer receives the event that is being sent, then only the latest one: events are not queued for it."""
    server = start()
    with Stream(server, receive_buffer=2048) as slow, Stream(server) as quick:
        for _ in range(4):
            quick.next()
        assert slow.next()["now_ms"] <= quick.next()["now_ms"]


def test_live_page_stream_ignores_handler_timeout(start):
    server = start(server="HandlerTimeout 2s\nMinRate 1000\nMinRateInterval 1s\n")
    with Stream(server) as stream:
        times = [stream.next()["now_ms"] for _ in range(5)]
    assert times[-1] - times[0] > 3500


def test_live_page_head_opens_no_stream(start):
    reply = start("    MaxViewers 1\n").get("/live?events", method="HEAD")
    assert reply.status == 200 and reply["Content-Type"] == "text/event-stream"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_live_page_streams_end_cleanly_with_their_worker(start, number):
    """The browser then reconnects, and reaches the new worker."""
    server = start()
    old = server.workers
    with Stream(server) as stream:
        stream.next()
        server.tell(number)
        end = time.monotonic() + 20
        while stream.next() is not None:
            assert time.monotonic() < end, "the stream continues"
        stream.client.expect_end()
    if number == signal.SIGHUP:
        wait_until(lambda: not set(old) & set(server.workers), "the old worker to end")
        with Stream(server) as stream:
            assert stream.next()["reloads"] == 1
    else:
        server.wait()


def test_live_page_streams_do_not_delay_stop(start):
    server = start()
    with Stream(server) as stream:
        stream.next()
        began = time.monotonic()
        server.stop(signal.SIGTERM)
        assert time.monotonic() - began < 10
        with pytest.raises((Closed, ConnectionResetError)):
            while stream.next():
                pass
