# SPDX-License-Identifier: Apache-2.0
"""Servers of an upstream that DNS records or a file list."""
import contextlib
import os
import signal
import socket
import struct
import threading
import time

import pytest

from backend import Backend, response
from dns_server import A, AAAA, SRV, DnsServer, a, aaaa, cname, record, srv
from dns_server import name as encode
from proc import wait_until
from prometheus import parse
from shell_server import socket_folder, start as start_shell
from upstream_group import HoldingBackend

assert start_shell and socket_folder
APP = "app.example"


def upstream(dns=None, server="", keys="", name="group"):
    lines = [f"Name {name}", *([f"Server {server}"] if server else []), *keys.splitlines()]
    if dns:
        lines += [f"Resolver {dns.address}"]
    return "[UPSTREAM]\n" + "".join(f"    {each}\n" for each in lines)


@pytest.fixture
def start(start_shell):
    def begin(dns=None, server="", keys="ResolveTTL 1s", route="", **how):
        return start_shell("", plugins=["proxy", "metrics"], top="\n[METRICS]\n    Metrics /metrics\n" + upstream(dns, server, keys),
                           sections=f"[ROUTES]\n    / proxy http://group {route}\n", **how)

    return begin


@contextlib.contextmanager
def backends(n, kind=Backend):
    """Backends at 127.0.0.1, 127.0.0.2, ..., with the same port."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(kind())
        yield [first, *(stack.enter_context(kind(at=(f"127.0.0.{i}", first.at[1]))) for i in range(2, n + 1))]


def states(it):
    return {each["server"]: each["state"] for each in it.json("upstreams")}


def wait_for_servers(it, *expected):
    want = {each if isinstance(each, str) else each.address for each in expected}
    wait_until(lambda: set(states(it)) == want, f"the servers {want}")


def counts(it, n, servers, **how):
    before = [len(each.requests) for each in servers]
    for _ in range(n):
        assert it.server.get("/", **how).status == 200
    return [len(each.requests) - old for each, old in zip(servers, before)]


def run(it, text, code=0):
    done = it(*text.split())
    assert done.code == code, done
    return done.out + done.err


def metrics(it, source):
    """The state, the number of servers, and whether lookups have failed."""
    numbers = parse(it.server.get("/metrics").text)
    state, servers, failures = (numbers[f"monkey_discovery_{each}", {"source": source, "upstream": "group"}]
                                for each in ("state", "servers", "failures_total"))
    return state, servers, failures > 0


# ---- Addresses ----

@pytest.mark.parametrize("workers", [1, 4])
def test_discovery_each_address_is_a_server(start, workers):
    with backends(3) as all, DnsServer({(APP, A): [a(APP, each.at[0]) for each in all]}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve", workers=workers)
        got = counts(it, 60, all)
        assert min(got) > 0, got
        wait_for_servers(it, *all)
        it.server.err.wait_for(rf"upstream group: the server {all[2].address} is listed by {APP}:{all[0].at[1]}")


def test_discovery_new_address_gets_requests_and_missing_one_gets_none(start):
    with backends(3) as all, DnsServer({(APP, A): [a(APP, "127.0.0.1"), a(APP, "127.0.0.2")]}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve", workers=3)
        assert counts(it, 20, all)[2] == 0
        dns.records[(APP, A)] = [a(APP, "127.0.0.2"), a(APP, "127.0.0.3")]
        wait_for_servers(it, all[1], all[2])
        got = counts(it, 30, all)
        assert got[0] == 0 and got[1] and got[2]
        it.server.err.wait_for(rf"the server {all[0].address} is no longer listed by")


def test_discovery_requests_of_missing_address_finish(start):
    with backends(2, HoldingBackend) as all, DnsServer({(APP, A): [a(APP, "127.0.0.1")]}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve")
        with it.server.connect() as first:
            first.ask("/")
            wait_until(lambda: len(all[0].requests) == 1, "the request")
            dns.records[(APP, A)] = [a(APP, "127.0.0.2")]
            wait_until(lambda: states(it).get(all[0].address) == "removed", "the removal")
            all[0].release()
            assert first.read().text == "late"
        wait_for_servers(it, all[1])


def test_discovery_ttl_of_the_answer_is_the_interval(start):
    with backends(1) as all, DnsServer({(APP, A): [a(APP, "127.0.0.1", ttl=1)]}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve", keys="")
        wait_until(lambda: len(dns.asked(APP, A)) >= 3, "further lookups")
        dns.records[(APP, A)] = [a(APP, "127.0.0.1", ttl=3000)]
        n = len(dns.asked(APP, A))
        wait_until(lambda: len(dns.asked(APP, A)) > n, "one more lookup")
        time.sleep(2)
        assert len(dns.asked(APP, A)) <= n + 2
        assert it.server.get("/").status == 200


def test_discovery_alias_and_second_name_server(start):
    with backends(1) as all, DnsServer({(APP, A): 5}) as broken, DnsServer() as dns:
        dns.records = {(APP, A): [cname(APP, "x.example"), cname("x.example", "Y.example"), a("y.example", "127.0.0.1")]}
        it = start(None, f"{APP}:{all[0].at[1]} resolve", keys=f"Resolver {broken.address} {dns.address}")
        assert it.server.get("/").status == 200 and broken.queries


def test_discovery_address6(start):
    with Backend(family=socket.AF_INET6, at=("::1", 0)) as b, \
            DnsServer({(APP, AAAA): [aaaa(APP, "::1")]}) as dns:
        it = start(dns, f"{APP}:{b.at[1]} resolve")
        assert it.server.get("/").status == 200
        assert set(states(it)) == {f"[::1]:{b.at[1]}"}


def test_discovery_weight_and_backup_of_the_line(start):
    with backends(2) as all, DnsServer({("a.example", A): [a("a.example", "127.0.0.1")],
                                        ("b.example", A): [a("b.example", "127.0.0.2")]}) as dns:
        port = all[0].at[1]
        it = start(dns, f"a.example:{port} weight=3 resolve", keys=f"Server b.example:{port} resolve backup\nResolveTTL 1s")
        wait_for_servers(it, *all)
        assert counts(it, 10, all) == [10, 0]
        dns.records[("a.example", A)] = 2  # fails: the server stays
        all[0].stop()
        assert counts(it, 5, all[1:]) == [5]


def test_discovery_static_server_beside_discovered(start):
    with backends(2) as all, DnsServer({(APP, A): [a(APP, "127.0.0.1"), a(APP, "127.0.0.2")]}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve", keys=f"Server {all[0].address} weight=3\nResolveTTL 1s", workers=1)
        wait_for_servers(it, *all)
        assert counts(it, 40, all) == [30, 10]


# ---- SRV ----

SERVICE = "_http._tcp.example"


def test_discovery_srv_port_weight_and_priority(start):
    with Backend() as one, Backend() as two, Backend() as spare, DnsServer() as dns:
        dns.records = {("n.example", A): [a("n.example", "127.0.0.1")],
                       (SERVICE, SRV): [srv(SERVICE, "n.example", spare.at[1], priority=20, weight=65535),
                                        srv(SERVICE, "n.example", one.at[1], priority=10, weight=30),
                                        srv(SERVICE, "N.example", two.at[1], priority=10, weight=10)]}
        it = start(dns, f"{SERVICE} resolve", keys="ResolveTTL 1s", workers=1)
        wait_for_servers(it, one, two, spare)
        rows = {each["server"]: each for each in it.json("upstreams")}
        assert rows[spare.address]["backup"] and not rows[one.address]["backup"]
        dns.records[(SERVICE, SRV)] = dns.records[(SERVICE, SRV)][1:]
        wait_for_servers(it, one, two)
        assert counts(it, 40, [one, two]) == [30, 10]


def test_discovery_srv_target_root_means_no_service(start):
    with DnsServer({(SERVICE, SRV): [srv(SERVICE, ".", 0)]}) as dns:
        it = start(dns, f"{SERVICE} resolve")
        assert it.server.get("/").status in (502, 503)
        it.server.err.wait_for(rf"upstream group: `{SERVICE}` does not resolve: the answer is empty; no server is known")


# ---- Failures ----

@pytest.mark.parametrize("answer, why", [
    ([], "the answer is empty"), (3, "the name does not exist"), (2, "the name servers answer with an error"),
    (None, "the name servers do not answer")])
def test_discovery_failure_keeps_the_servers(start, answer, why):
    with backends(1) as all, DnsServer({(APP, A): [a(APP, "127.0.0.1")], (APP, AAAA): []}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve")
        assert it.server.get("/").status == 200
        dns.records = {} if answer == 3 else {(APP, A): answer, (APP, AAAA): answer}
        it.server.err.wait_for(f"upstream group: `{APP}:.*` does not resolve: {why}; the servers stay as they are")
        assert counts(it, 5, all) == [5]
        assert metrics(it, f"{APP}:{all[0].at[1]}") == (2, 1, True)
        dns.records = {(APP, A): [a(APP, "127.0.0.1")], (APP, AAAA): []}
        it.server.err.wait_for(f"upstream group: `{APP}:.*` lists 1 server again")
        assert it.server.err.text.count("does not resolve") == 1
        assert metrics(it, f"{APP}:{all[0].at[1]}") == (1, 1, True)


def test_discovery_family_that_fails_keeps_its_servers(start):
    with backends(2) as all, DnsServer({(APP, A): [a(APP, "127.0.0.1"), a(APP, "127.0.0.2")], (APP, AAAA): []}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve")
        wait_for_servers(it, *all)
        dns.records[(APP, A)], dns.records[(APP, AAAA)] = 2, [aaaa(APP, "::1")]
        wait_for_servers(it, *all, f"[::1]:{all[0].at[1]}")


def test_discovery_family_that_fails_does_not_keep_servers_of_the_other(start):
    with backends(2) as all, DnsServer({(APP, A): [a(APP, "127.0.0.1"), a(APP, "127.0.0.2")], (APP, AAAA): 2}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve")
        wait_for_servers(it, *all)
        it.server.err.wait_for(f"`{APP}:.*` resolves only in part: AAAA of {APP}: the name servers answer with an error; the servers of that")
        assert metrics(it, f"{APP}:{all[0].at[1]}")[:2] == (3, 2)
        dns.records[(APP, A)] = [a(APP, "127.0.0.1")]
        wait_for_servers(it, all[0])
        dns.records[(APP, AAAA)] = []
        it.server.err.wait_for(f"`{APP}:.*` lists 1 server again")
        assert it.server.err.text.count("only in part") == 1


def test_discovery_family_that_fails_is_tried_again_before_the_ttl(start):
    """The answer may be used for an hour, but only one family has answered."""
    with backends(1) as all, DnsServer({(APP, A): 2, (APP, AAAA): [aaaa(APP, "::1", ttl=3600)]}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve", keys="")
        wait_for_servers(it, f"[::1]:{all[0].at[1]}")
        dns.records[(APP, A)] = [a(APP, "127.0.0.1")]
        wait_for_servers(it, all[0], f"[::1]:{all[0].at[1]}")


def test_discovery_srv_target_that_does_not_exist_keeps_nothing(start):
    service = "_http._tcp.example"
    with backends(2) as all, DnsServer({("one.example", A): [a("one.example", "127.0.0.1")], ("one.example", AAAA): [],
                                        ("two.example", A): [a("two.example", "127.0.0.2")], ("two.example", AAAA): []}) as dns:
        dns.records[(service, SRV)] = [srv(service, each, port=all[0].at[1]) for each in ("one.example", "two.example", "gone.example")]
        it = start(dns, f"{service} resolve")
        wait_for_servers(it, *all)
        del dns.records[("two.example", A)], dns.records[("two.example", AAAA)]
        wait_for_servers(it, all[0])


def test_discovery_srv_weights_are_relative_to_their_priority(start):
    service, port = "_http._tcp.example", 0
    with backends(3) as all:
        port = all[0].at[1]
        names = {f"{each}.example": f"127.0.0.{i}" for i, each in enumerate(("one", "two", "three"), 1)}
        with DnsServer({(name, A): [a(name, ip)] for name, ip in names.items()} | {(name, AAAA): [] for name in names}) as dns:
            dns.records[(service, SRV)] = [srv(service, "one.example", port=port, weight=60), srv(service, "two.example", port=port, weight=20),
                                           srv(service, "three.example", port=port, weight=65535, priority=9)]
            it = start(dns, f"{service} resolve", workers=1)
            wait_for_servers(it, *all)
            assert counts(it, 40, all) == [30, 10, 0]


def test_discovery_requests_wait_for_the_first_answer(start):
    gate = threading.Event()

    def slowly(query):
        gate.wait(20)
        return dns.answer_with(query)

    with backends(1) as all, DnsServer() as dns:
        held = [a(APP, "127.0.0.1")]
        dns.answer_with = lambda query: query[:2] + struct.pack(">HHHHH", 0x8180, 1, 1, 0, 0) + query[12:] + held[0]
        dns.records = {(APP, A): slowly, (APP, AAAA): []}
        it = start(dns, f"{APP}:{all[0].at[1]} resolve", workers=2)
        with it.server.connect() as first:
            first.ask("/")
            time.sleep(0.3)
            gate.set()
            assert first.read().status == 200


def test_discovery_unknown_name_at_start_answers_503_and_recovers(start):
    with backends(1) as all, DnsServer() as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve")
        assert it.server.get("/").status in (502, 503)
        dns.records = {(APP, A): [a(APP, "127.0.0.1")]}
        wait_until(lambda: it.server.get("/").status == 200, "the server")


# ---- Hostile answers ----

def test_discovery_truncated_answer_is_fetched_over_tcp(start):
    with backends(2) as all, DnsServer({(APP, A): [a(APP, "127.0.0.1"), a(APP, "127.0.0.2")]}, truncates=True) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve")
        wait_for_servers(it, *all)
        assert any(protocol == "tcp" for *_, protocol in dns.asked(APP, A))


def test_discovery_thousand_addresses_fill_the_room_and_warn_once(start):
    many = [a(APP, f"127.0.{i // 250}.{i % 250 + 1}") for i in range(1000)]
    with backends(1) as all, DnsServer({(APP, A): many}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve", keys="MaxServers 5\nResolveTTL 1s")
        it.server.err.wait_for("lists 995 servers more than the upstream has room for: see MaxServers")
        first = set(states(it))
        assert len(first) == 5
        dns.records[(APP, A)] = many[500:] + many[:500]
        n = len(dns.asked(APP, A))
        wait_until(lambda: len(dns.asked(APP, A)) > n + 2, "further lookups")
        assert set(states(it)) == first
        assert it.server.err.text.count("more than the upstream has room") == 1


def head(query, n, flags=0x8180):
    return query[:2] + struct.pack(">HHHHH", flags, 1, n, 0, 0) + query[12:]


HOSTILE = {
    "loop of pointers": lambda q: head(q, 1) + struct.pack(">H", 0xc000 | len(q)) + struct.pack(">HHIH", 1, 1, 1, 4) + b"\x7f\0\0\1",
    "loop of aliases": lambda q: head(q, 2) + cname(APP, "x.example") + cname("x.example", APP),
    "too few records": lambda q: head(q, 9) + a(APP, "127.0.0.1"),
    "data beyond the end": lambda q: head(q, 1) + encode(APP) + struct.pack(">HHIH", 1, 1, 1, 60000) + b"\x7f\0\0\1",
    "address of 3 bytes": lambda q: head(q, 1) + record(APP, A, b"\x7f\0\0"),
    "empty message": lambda q: b"",
    "only a head": lambda q: head(q, 0)[:12],
    "another question": lambda q: q[:2] + struct.pack(">HHHHH", 0x8180, 1, 1, 0, 0) + encode("b.example") + q[-4:] + a(APP, "127.0.0.9"),
    "another id": lambda q: bytes([q[0] ^ 1]) + head(q, 1)[1:] + a(APP, "127.0.0.9"),
    "another owner": lambda q: head(q, 1) + a("b.example", "127.0.0.9"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_discovery_hostile_answer_keeps_the_servers(start, what):
    with backends(1) as all, DnsServer({(APP, A): [a(APP, "127.0.0.1")], (APP, AAAA): []}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve")
        assert it.server.get("/").status == 200
        dns.records = {(APP, A): HOSTILE[what], (APP, AAAA): HOSTILE[what]}
        it.server.err.wait_for("does not resolve: .*; the servers stay as they are")
        assert counts(it, 3, all) == [3] and set(states(it)) == {all[0].address}


# ---- Files ----

def replace(path, text):
    new = path.with_suffix(".new")
    new.write_text(text)
    new.rename(path)


def test_discovery_file_is_watched(start, tmp_path):
    path = tmp_path / "list" / "servers"
    path.parent.mkdir()
    with backends(3) as all:
        path.write_text(f"# the servers\n{all[0].address} weight=3\n\n{all[1].address}\n")
        it = start(keys=f"ServersFile {path}", workers=1)
        assert counts(it, 40, all) == [30, 10, 0]
        replace(path, f"{all[1].address}\n{all[2].address}\n")
        wait_for_servers(it, all[1], all[2])
        with path.open("a") as file:  # written in place
            file.write(f"{all[0].address} backup\n")
        wait_for_servers(it, *all)
        assert counts(it, 20, all) == [0, 10, 10]
        replace(path, f"{all[1].address} weight=4\n{all[2].address}\n")
        wait_for_servers(it, all[1], all[2])
        assert counts(it, 50, all) == [0, 40, 10]


def test_discovery_file_behind_link_that_is_swapped(start, tmp_path):
    with backends(2) as all:
        for each, backend in zip("ab", all):
            (tmp_path / each).mkdir()
            (tmp_path / each / "servers").write_text(f"{backend.address}\n")
        (tmp_path / "..data").symlink_to("a")
        (tmp_path / "servers").symlink_to("..data/servers")
        it = start(keys=f"ServersFile {tmp_path}/servers")
        assert counts(it, 3, all) == [3, 0]
        (tmp_path / "..new").symlink_to("b")
        (tmp_path / "..new").rename(tmp_path / "..data")
        wait_for_servers(it, all[1])
        assert counts(it, 3, all) == [0, 3]


@pytest.mark.parametrize("text, why", [
    ("127.0.0.1:80\nhttp://x\n", "line 2: expected HOST:PORT"), ("127.0.0.1:80 weight=0\n", "line 1: expected `backup`, or `weight="),
    ("127.0.0.1:80\n127.0.0.1:80\n", "line 2: expected each server once"), ("", "the file lists no server"),
    ("x" * 70000, "File too large"), ("127.0.0.1:80 resolve\n", "line 1: expected `backup`, or `weight="), (None, "No such file")])
def test_discovery_bad_file_keeps_the_servers(start, tmp_path, text, why):
    path = tmp_path / "servers"
    with backends(2) as all:
        path.write_text(f"{all[0].address}\n")
        it = start(keys=f"ServersFile {path}", workers=2)
        assert counts(it, 3, all) == [3, 0]
        if text is None:
            path.unlink()
        else:
            replace(path, text)
        it.server.err.wait_for(f"upstream group: {path}: {why}.*; the servers stay as they are")
        assert counts(it, 3, all) == [3, 0]
        replace(path, f"{all[1].address}\n")
        wait_for_servers(it, all[1])
        it.server.err.wait_for(f"upstream group: {path} lists 1 server again")


def test_discovery_missing_file_at_start(start, tmp_path):
    path = tmp_path / "servers"
    with backends(1) as all:
        it = start(keys=f"ServersFile {path}")
        it.server.err.wait_for(f"{path}: No such file")
        assert it.server.get("/").status in (502, 503)
        path.write_text(f"{all[0].address}\n")
        wait_until(lambda: it.server.get("/").status == 200, "the server")


def test_discovery_change_of_the_file_outlasts_other_changes_in_its_folder(start, tmp_path):
    """A server cannot become a backup while it still has requests. Meanwhile, other files change."""
    path = tmp_path / "list" / "servers"
    path.parent.mkdir()
    with contextlib.ExitStack() as stack:
        first, second = stack.enter_context(HoldingBackend()), stack.enter_context(Backend())
        path.write_text(f"{first.address}\n")
        it = start(keys=f"ServersFile {path}", workers=2)
        with it.server.connect() as client:
            client.ask("/")
            wait_until(lambda: first.requests, "the request at the server")
            replace(path, f"{first.address} backup\n{second.address}\n")
            wait_until(lambda: second.address in states(it), "the new server")
            (path.parent / "other").write_text("x")
            time.sleep(0.5)
            (path.parent / "other").write_text("y")
            first.release()
            assert client.read().status == 200
        wait_for_servers(it, first, second)


def test_discovery_server_that_two_sources_list(start, tmp_path):
    path = tmp_path / "servers"
    with backends(2) as all, DnsServer({(APP, A): [a(APP, "127.0.0.1"), a(APP, "127.0.0.2")], (APP, AAAA): []}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve", keys=f"ResolveTTL 1s\nServersFile {path}")
        wait_for_servers(it, *all)
        path.write_text(f"{all[1].address}\n")
        time.sleep(0.5)
        dns.records[(APP, A)] = [a(APP, "127.0.0.1")]
        wait_until(lambda: states(it).get(all[1].address) != "removed" and counts(it, 4, all)[1] > 0, "the server of the file")


def test_discovery_silent_name_servers_do_not_delay_files(start, tmp_path):
    path = tmp_path / "servers"
    with backends(2) as all, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        path.write_text(f"{all[0].address}\n")
        lines = "".join(f"Server n{i}.example:80 resolve\n" for i in range(6))
        it = start(keys=f"{lines}Resolver 127.0.0.1:{silent.getsockname()[1]}\nServersFile {path}", workers=1)
        wait_for_servers(it, all[0])
        replace(path, f"{all[1].address}\n")
        began = time.monotonic()
        wait_for_servers(it, all[1])
        assert time.monotonic() - began < 8


def test_saved_server_is_listed_after_a_reload(start, tmp_path):
    with backends(2) as all:
        it = start(server=all[0].address, keys=f"MaxServers 4\nStateFile {tmp_path}/state")
        run(it, f"upstream group add {all[1].address} --save")
        wait_for_servers(it, *all)
        run(it, "reload")
        wait_for_servers(it, *all)
        assert counts(it, 4, all) == [2, 2]
        time.sleep(1.5)  # workers of the earlier configuration close its servers
        wait_for_servers(it, *all)


# ---- Neighbors: reload, commands, crashes, slow start ----

@pytest.mark.processes("it reloads, or kills workers")
def test_discovery_reload_keeps_servers_before_the_first_lookup(start):
    with backends(2) as all, DnsServer({(APP, A): [a(APP, "127.0.0.1"), a(APP, "127.0.0.2")]}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve", workers=3)
        wait_for_servers(it, *all)
        dns.records = {(APP, A): None, (APP, AAAA): None}  # the new workers get no answer
        for _ in range(3):
            run(it, "reload")
            assert min(counts(it, 12, all)) > 0
        it.change("ResolveTTL 1s", "ResolveTTL 2s\n    MaxServers 3")
        run(it, "reload")
        assert min(counts(it, 12, all)) > 0


@pytest.mark.processes("it reloads, or kills workers")
def test_discovery_reload_without_source_removes_its_servers(start):
    with backends(2) as all, DnsServer({(APP, A): [a(APP, "127.0.0.2")]}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve", keys=f"Server {all[0].address}\nMaxServers 4\nResolveTTL 1s")
        wait_for_servers(it, *all)
        line = f"Server {APP}:{all[0].at[1]} resolve"
        it.change(line, f"# {line}")
        it.change("Resolver", "# Resolver")
        run(it, "reload")
        wait_for_servers(it, all[0])
        assert counts(it, 10, all) == [10, 0]
        it.change(f"# {line}", line)
        it.change("# Resolver", "Resolver")
        run(it, "reload")
        wait_for_servers(it, *all)


@pytest.mark.processes("it reloads, or kills workers")
def test_discovery_killed_worker_is_replaced(start):
    with backends(2) as all, DnsServer({(APP, A): [a(APP, "127.0.0.1")]}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve", workers=2)
        wait_for_servers(it, all[0])
        it.server.allow("killed by signal 9|worker .* (died|was killed)")
        for each in it.server.workers:
            os.kill(each, signal.SIGKILL)
        wait_until(lambda: it.server.get("/").status == 200, "the next workers")
        dns.records[(APP, A)] = [a(APP, "127.0.0.2")]
        wait_for_servers(it, all[1])
        assert counts(it, 5, all) == [0, 5]


def test_discovery_commands_on_discovered_servers(start, tmp_path):
    with backends(3) as all, DnsServer({(APP, A): [a(APP, "127.0.0.1"), a(APP, "127.0.0.2")]}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve", keys="ResolveTTL 1s", workers=1)
        wait_for_servers(it, *all[:2])
        assert "lists the server" in run(it, f"upstream group remove {all[0].address}", 1)
        run(it, f"upstream group drain {all[0].address}")
        n = len(dns.asked(APP, A))
        wait_until(lambda: len(dns.asked(APP, A)) > n + 1, "further lookups")
        assert counts(it, 10, all) == [0, 10, 0] and states(it)[all[0].address] == "draining"
        run(it, f"upstream group enable {all[0].address}")
        run(it, f"upstream group weight {all[0].address} 3")
        n = len(dns.asked(APP, A))
        wait_until(lambda: len(dns.asked(APP, A)) > n + 1, "further lookups")
        assert counts(it, 40, all) == [30, 10, 0]
        run(it, f"upstream group add {all[2].address}")
        n = len(dns.asked(APP, A))
        wait_until(lambda: len(dns.asked(APP, A)) > n + 1, "further lookups")
        assert min(counts(it, 20, all)) > 0
        run(it, f"upstream group remove {all[2].address}")


@pytest.mark.processes("it reloads, or kills workers")
def test_discovery_saved_drain_of_discovered_server(start, tmp_path):
    state = tmp_path / "state"
    with backends(2) as all, DnsServer({(APP, A): [a(APP, "127.0.0.1"), a(APP, "127.0.0.2")]}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve", keys=f"ResolveTTL 1s\nStateFile {state}")
        wait_for_servers(it, *all)
        run(it, f"upstream group drain {all[0].address} --save")
        assert state.read_text().splitlines()[1:] == [f"{all[0].address} discovered drain"]
        run(it, "reload")
        assert counts(it, 10, all) == [0, 10] and states(it)[all[0].address] == "draining"


@pytest.fixture
def saving(start, tmp_path):
    """`saving(servers listed at the start)`: a server with a ServersFile and a StateFile."""
    file, state = tmp_path / "list" / "servers", tmp_path / "state"
    file.parent.mkdir()

    class Saving:
        def __init__(self, *listed, configured=()):
            self.list(*listed)
            self.configured = configured
            lines = "".join(f"Server {each.address}\n" for each in configured)
            self.it = start(keys=f"ServersFile {file}\nStateFile {state}\nMaxServers 8\n{lines}", workers=2)
            wait_for_servers(self.it, *configured, *listed)

        def list(self, *servers):
            replace(file, "".join(f"{each.address}\n" for each in servers))

        def now_lists(self, *servers):
            self.list(*servers)
            wait_for_servers(self.it, *self.configured, *servers)

        def state_of(self, server):
            return states(self.it)[server.address]

        def run(self, text):
            assert run(self.it, f"upstream group {text} --save") == "done, and saved\n"

        @property
        def lines(self):
            return state.read_text().splitlines()[1:]

    Saving.state = state
    return Saving


def test_saved_drain_applies_when_the_server_is_listed_again(saving):
    with backends(2) as (a, b):
        each = saving(a, b)
        each.run(f"drain {b.address} move")
        for _ in range(3):
            each.now_lists(a)
            each.now_lists(a, b)
            assert each.state_of(b) == "draining" and counts(each.it, 10, [a, b]) == [10, 0]
        each.run(f"enable {b.address}")
        each.now_lists(a)
        each.now_lists(a, b)
        assert each.state_of(b) == "up" and each.lines == []


def test_saved_drain_of_unlisted_server_outlasts_other_changes(saving):
    with backends(3) as (a, b, c):
        each = saving(a, b, configured=[c])
        each.run(f"drain {b.address}")
        each.now_lists(a)
        each.run(f"weight {a.address} 7")
        each.run(f"weight {c.address} 2")
        assert each.lines == [f"{c.address} weight=2", f"{b.address} discovered drain", f"{a.address} discovered weight=7"]
        each.now_lists(b)
        assert each.state_of(b) == "draining"
        each.run(f"enable {b.address}")
        assert each.lines == [f"{c.address} weight=2", f"{a.address} discovered weight=7"]


def test_saved_enable_replaces_the_drain_of_the_file(saving):
    with backends(2) as (a, b):
        saving.state.write_text(f"{b.address} discovered weight=3 drain\n")
        each = saving(a, b)
        assert each.state_of(b) == "draining"
        each.run(f"enable {b.address}")
        each.now_lists(a)
        each.now_lists(a, b)
        assert each.state_of(b) == "up" and each.lines == [f"{b.address} discovered weight=3"]
        share = counts(each.it, 40, [a, b])[0]
        assert share in (9, 10, 11), "b has three times the weight of a"


def test_unsaved_change_of_listed_server_ends_when_it_is_unlisted(saving):
    with backends(2) as (a, b):
        each = saving(a, b)
        run(each.it, f"upstream group drain {b.address}")
        each.now_lists(a)
        each.run(f"weight {a.address} 2")
        assert each.lines == [f"{a.address} discovered weight=2"]
        each.now_lists(a, b)
        assert each.state_of(b) == "up"


@pytest.mark.processes("it reloads, or kills workers")
def test_saved_drain_of_unlisted_server_outlasts_reloads_and_crashes(saving):
    with backends(2) as (a, b):
        each = saving(a, b)
        each.run(f"drain {b.address}")
        each.now_lists(a)
        run(each.it, "reload")
        each.run(f"weight {a.address} 7")
        assert each.lines == [f"{b.address} discovered drain", f"{a.address} discovered weight=7"]
        old = each.it.server.workers
        each.it.server.allow("killed by signal 9|worker .* (died|was killed)")
        for worker in old:
            os.kill(worker, signal.SIGKILL)
        wait_until(lambda: len(set(each.it.server.workers) - set(old)) == 2 and each.it.server.get("/").status == 200, "the next workers")
        each.now_lists(a, b)
        assert each.state_of(b) == "draining"
        each.state.write_text("")
        run(each.it, "reload")
        assert each.state_of(b) == "up"


@pytest.mark.processes("it reloads, or kills workers")
def test_saved_drain_applies_to_a_server_that_the_configuration_now_contains(saving):
    with backends(2) as (a, b):
        each = saving(a, b)
        each.run(f"drain {b.address}")
        each.it.change("MaxServers 8", f"MaxServers 8\n    Server {b.address}")
        run(each.it, "reload")
        wait_for_servers(each.it, a, b)
        assert each.state_of(b) == "draining"
        each.run(f"weight {a.address} 7")
        assert each.lines == [f"{b.address} drain", f"{a.address} discovered weight=7"]


def test_saved_changes_fit_into_the_state_file(saving):
    with backends(2) as (a, b):
        saving.state.write_text("".join(f"127.0.1.{i}:80 discovered drain\n" for i in range(64)))
        each = saving(a, b)
        each.run(f"drain {b.address}")
        each.run(f"weight {a.address} 7")
        assert each.lines == [*(f"127.0.1.{i}:80 discovered drain" for i in range(2, 64)), f"{a.address} discovered weight=7", f"{b.address} discovered drain"]


def test_discovery_slow_start_of_new_server(start):
    with backends(2) as all, DnsServer({(APP, A): [a(APP, "127.0.0.1")]}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve", keys=f"Server {all[0].address}\nResolveTTL 1s\nSlowStart 600s", workers=1)
        assert it.server.get("/").status == 200
        dns.records[(APP, A)].append(a(APP, "127.0.0.2"))
        wait_until(lambda: states(it).get(all[1].address) == "slow_start", "the server")
        got = counts(it, 40, all)
        assert got[1] <= 3


@pytest.mark.processes("it reloads, or kills workers")
def test_discovery_sticky_client_keeps_its_server(start):
    with backends(3) as all, DnsServer({(APP, A): [a(APP, "127.0.0.1"), a(APP, "127.0.0.3")]}) as dns:
        it = start(dns, f"{APP}:{all[0].at[1]} resolve", route="sticky=S", workers=2)
        wait_for_servers(it, all[0], all[2])
        while True:
            before = len(all[2].requests)
            reply = it.server.get("/")
            if len(all[2].requests) > before:
                break
        cookie = [("Cookie", reply["Set-Cookie"].split(";")[0])]
        dns.records[(APP, A)] = [a(APP, "127.0.0.2"), a(APP, "127.0.0.3")]
        wait_for_servers(it, *all[1:])
        assert counts(it, 10, all, fields=cookie) == [0, 0, 10]
        run(it, "reload")
        assert counts(it, 10, all, fields=cookie) == [0, 0, 10]


@pytest.mark.processes("it reloads")
def test_discovery_changes_under_load_lose_no_request(start, tmp_path):
    path, statuses = tmp_path / "servers", []
    with backends(4) as all:
        path.write_text(f"{all[1].address}\n{all[2].address}\n")
        it = start(keys=f"Server {all[0].address}\nServersFile {path}", workers=4)

        def send():
            for _ in range(150):
                statuses.append(it.server.get("/").status)

        threads = [threading.Thread(target=send) for _ in range(4)]
        for each in threads:
            each.start()
        for i in range(100):
            if not any(each.is_alive() for each in threads):
                break
            replace(path, f"{all[1 + i % 3].address}\n{all[1 + (i + 1) % 3].address}\n")
            run(it, f"upstream group {'enable' if i % 2 else 'drain'} {all[0].address}{' move' if i % 4 == 0 else ''}")
            if i == 5:
                run(it, "reload")
        for each in threads:
            each.join()
        assert statuses == [200] * 600


# ---- Configuration ----

@pytest.fixture
def check(request, tmp_path):
    """Returns what `monkey -t` prints about a broken [UPSTREAM]."""
    def begin(section):
        conf = tmp_path / "monkey.conf"
        conf.write_text(f"{section}[PLUGINS]\n    Load proxy\n[HOST]\n    DocumentRoot .\n[ROUTES]\n    /* proxy http://group\n")
        done = request.getfixturevalue("run")("-t", "-c", conf)
        assert done.code == 3 and done.err.startswith(f"{conf}:"), done
        return done.err

    return begin


@pytest.mark.parametrize("lines, why", [
    ("Server 10.0.0.1:80 resolve", "expected a name before `resolve`"), ("Server unix:/x resolve", "expected a name before `resolve`"),
    ("Server _http._tcp.example:80 resolve", "expected no port"),
    ("Server a..b:80 resolve", "expected a domain name"), (f"Server {'x' * 64}.example:80 resolve", "expected a domain name"),
    ("Server a.example:80 resolve\nResolver fe80::1%nowhere0", "expected the address of a name server"), ("Server a.example:80 resolve\nMaxServers off\nResolver x", "expected the address of a name server"),
    ("Server a.example:80 resolve\nServer 10.0.0.1:80\nMaxServers 1", "no room is left"), ("ServersFile /nowhere/x", "the folder of `/nowhere/x` does not exist"),
    ("Server a.example:80 resolv", "expected `backup`, `resolve` or"), ("Server a.example:80 resolve\nResolveTTL 10ms", "too small")])
def test_discovery_bad_configuration(check, lines, why):
    sections = "[UPSTREAM]\n    Name group\n" + "".join(f"    {each}\n" for each in lines.splitlines())
    assert why in check(sections)


def test_discovery_malformed_file_is_reported_with_its_line(check, tmp_path):
    (tmp_path / "servers").write_text("10.0.0.1:80\n10.0.0.2:80 fast\n")
    text = check(f"[UPSTREAM]\n    Name group\n    ServersFile {tmp_path}/servers\n")
    assert f"{tmp_path}/servers: line 2: expected `backup`, or `weight=`" in text
