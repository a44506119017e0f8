# SPDX-License-Identifier: Apache-2.0
"""[UPSTREAM]: configuration errors and server selection. test_metrics_upstreams.py tests the metrics of upstreams."""
import collections
import contextlib
import os
import signal
import socket
import threading
import time

import pytest

from backend import Backend, response
from upstream_group import HoldingBackend, open_requests, group
from metering import status
from proc import sleeps, wait_until

# The checks are frequent, but HealthTimeout must suffice on a busy machine.
CHECKED = "HealthCheck /health?deep\nHealthInterval 100ms\nHealthTimeout 1s"

# ---- Configuration ----

NAME, SERVER = "    Name group\n", "    Server 127.0.0.1:1\n"
NO_SERVER = r"expected HOST:PORT, [ADDRESS6]:PORT or unix:/path"
WEIGHT = "expected `backup`, `resolve` or `weight=` with a number from 1 to 100"
# The section, the location of its error (line and column in the section), and the message.
MISTAKES = [
    (NAME, "1:1", "[UPSTREAM] has no Server"),
    (SERVER, "1:1", "[UPSTREAM] has no Name, so no route can use it"),
    ("    Name a b\n" + SERVER, "2:10", "expected letters, digits, `-`, `_` and `.`, at most 63"),
    (f"    Name {'x' * 64}\n{SERVER}", "2:10", "at most 63"),
    (f"{NAME}{SERVER}[UPSTREAM]\n{NAME}{SERVER}", "5:10", "there are two upstreams `group`"),
    (f"{NAME}{SERVER}    Sever 127.0.0.1:2\n", "4:5", "unknown key `Sever` in [UPSTREAM]|did you mean `Server`?"),
    (f"{NAME}{SERVER}    Server http://127.0.0.1:80\n", "4:12", f"`http://127.0.0.1:80` is not a server: {NO_SERVER}|write it without"),
    *((f"{NAME}{SERVER}    Server {bad}\n", "4:12", f"`{bad}` is not a server: {NO_SERVER}")
      for bad in ("127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:x", "::1:80", "[::1", "[nonsense]:80", "unix:",
                  "-a:80", "a/b:80")),
    *((f"{NAME}    Server 127.0.0.1:1 {bad}\n", "3:24", WEIGHT) for bad in ("weight=0", "weight=101", "weight=", "spare")),
    (f"{NAME}{SERVER}    Server unix:/{'x' * 107}\n", "4:12", f"`unix:/{'x' * 74}` is not a server"),
    (f"{NAME}{SERVER}    Balance random\n", "4:13", "expected one of round_robin, least_conn, hash, not `random`"),
    (f"{NAME}{SERVER}    MaxConnections 1025\n", "4:20", "expected a number up to 1024, or `auto`, not `1025`"),
    (f"{NAME}{SERVER}    KeepAliveConnections x\n", "4:26", "expected a number up to 1024, or `auto`, not `x`"),
    *((f"{NAME}{SERVER}    {key} {bad}\n", f"4:{len(key) + 6}", f"`{bad}` is too small")
      for key, bad in (("KeepAliveTimeout", "0"), ("ConnectTimeout", "0"), ("QueueTimeout", "0"), ("HoldDown", "0"), ("HealthInterval", "99ms"),
                       ("ResolveTTL", "999ms"))),
    (f"{NAME}{SERVER}    RetryBudget 101\n", "4:17", "`101` is too large"),
    (f"{NAME}{SERVER}    HealthCheck health\n", "4:17", "expected a path that begins with `/`, or `connect`"),
    (f'{NAME}{SERVER}    HealthCheck "/a b"\n', "4:17", "expected a path without blanks"),
    (f"{NAME}{SERVER}    TLS maybe\n", "4:9", "expected on or off, not `maybe`"),
    (f"{NAME}{SERVER}    TLS on\n    TLSAuthority nowhere.pem\n", "4:9", "nowhere.pem: cannot read the authority: No such file"),
    (f"{NAME}{SERVER}    TLS on\n    TLSCertificate nowhere.pem\n", "4:9", "nowhere.pem: cannot read the certificate: No such file"),
    (NAME + SERVER * 65, "3:12", "more than 64 servers in one upstream"),
]


@pytest.mark.parametrize("section, location, message", MISTAKES, ids=[message[:40] for _, _, message in MISTAKES])
def test_upstream_invalid_configuration_is_rejected(run, tmp_path, section, location, message):
    conf = tmp_path / "monkey.conf"
    conf.write_text(f"[UPSTREAM]\n{section}[PLUGINS]\n    Load proxy\n[HOST]\n    DocumentRoot .\n[ROUTES]\n"
                    + ("    /* proxy http://group\n" if section.startswith(NAME) else "    /* static\n"))
    done = run("-t", "-c", conf)
    message, _, hint = message.partition("|")
    assert done.code == 3
    first = done.err.splitlines()[0]
    assert first.startswith(f"{conf}:{location}: error: ") and message in first, done.err
    assert done.err.count("error:") == 1 and (not hint or f"hint: {hint}" in done.err), done.err


def test_upstream_servers_beyond_limit_are_rejected(run, tmp_path):
    conf = tmp_path / "monkey.conf"
    groups = [f"[UPSTREAM]\n    Name g{i}\n" + "".join(f"    Server 127.0.0.1:{1 + k}\n" for k in range(60)) for i in range(5)]
    routes = "".join(f"    /{i} proxy http://g{i}\n" for i in range(5))
    conf.write_text("".join(groups) + f"[PLUGINS]\n    Load proxy\n[HOST]\n    DocumentRoot .\n[ROUTES]\n{routes}")
    done = run("-t", "-c", conf)
    assert done.code == 3 and "more than 256 servers" in done.err


def test_upstream_for_two_handlers_is_rejected(run, tmp_path):
    conf = tmp_path / "monkey.conf"
    conf.write_text(f"[UPSTREAM]\n{NAME}{SERVER}[PLUGINS]\n    Load proxy\n    Load fastcgi\n[HOST]\n    DocumentRoot .\n"
                    "[ROUTES]\n    /* proxy http://group\n    *.php fastcgi group\n")
    done = run("-t", "-c", conf)
    assert done.code == 3 and "another kind of handler uses the upstream `group`" in done.err
    assert "hint: write an [UPSTREAM] with another Name" in done.err


# ---- Servers ----

@pytest.fixture
def start(monkey):
    def begin(*servers, keys="", options="", others=(), more="", **how):
        return monkey(plugins=["proxy", "metrics", *others], top=group(*servers, keys=keys),
                      sections=f"{more}[ROUTES]\n    /status metrics json\n    /* proxy http://group {options}\n", **how)

    return begin


@pytest.fixture
def backends():
    """`backends(3)` starts three backends."""
    with contextlib.ExitStack() as stack:
        yield lambda n, **how: [stack.enter_context(Backend(**how)) for _ in range(n)]


def restarted(backend):
    return Backend(backend.reply, at=backend.at)


def states(server):
    return [each["state"] for each in status(server)["upstreams"]]


def ask(server, n, target="/", **how):
    """Sends n requests over one connection, all of which must succeed."""
    with server.connect() as c:
        for _ in range(n):
            reply = c.get(target, **how)
            assert reply.status == 200, reply


def shares(*backends):
    return [len(each.requests) for each in backends]


def test_upstream_unresolved_name_counts_as_down(start, backends):
    a, = backends(1)
    server = start("nowhere.invalid:80", a)
    ask(server, 10)
    wait_until(lambda: states(server) == ["unresolved", "up"], "the state is shown")


def test_upstream_without_resolved_server_gets_error(start):
    server = start("nowhere.invalid:80", "neither.invalid:80")
    assert server.get("/").status in (502, 503)


def test_upstream_name_with_several_addresses_works(start, backends):
    """The name also resolves to an address without a server."""
    a, = backends(1)
    ask(start(f"localhost:{a.at[1]}"), 4)
    assert shares(a) == [4]


def test_upstream_server_may_have_ipv6_address(start):
    try:
        with Backend(family=socket.AF_INET6, at=("::1", 0)) as a:
            ask(start(f"[::1]:{a.at[1]}"), 2)
    except OSError:
        pytest.skip("there is no IPv6")


# ---- Load balancing ----

def test_upstream_weights_distribute_requests(start, backends):
    a, b, c = backends(3)
    ask(start(a, f"{b.address} weight=2", f"{c.address} weight=5"), 80)
    assert shares(a, b, c) == [10, 20, 50]
    assert [each.target for each in c.requests] == ["/"] * 50


def test_upstream_least_conn_prefers_idle_server(start, backends):
    with HoldingBackend() as slow:
        a, = backends(1)
        server = start(slow, a, keys="Balance least_conn", workers=2)
        with open_requests(server, 1, "/x") as clients:
            wait_until(lambda: slow.requests, "one is busy")
            ask(server, 5)
            ask(server, 5)
            assert shares(slow, a) == [1, 10]
            slow.release()
            assert clients[0].read().status == 200


def keys_of(server, backends, n=60):
    """Returns the backend to which each key is mapped."""
    for each in backends:
        each.requests.clear()
    with server.connect() as c:
        for i in range(n):
            assert c.get(f"/{i}", fields=[("X-Key", f"key {i}")]).status == 200
    return {request.target: i for i, each in enumerate(backends) for request in each.requests}


def test_upstream_hash_remaps_only_keys_of_lost_server(start, backends):
    servers = backends(3)
    server = start(*servers, keys="Balance hash\nMaxFails 1\nHoldDown 50ms", options="hash=field:X-Key", workers=2)
    before = keys_of(server, servers)
    assert collections.Counter(before.values()).keys() == {0, 1, 2}, "each has some keys"
    assert keys_of(server, servers) == before, "the mapping is stable"
    servers[1].stop()
    meanwhile = keys_of(server, servers)
    assert all(meanwhile[key] == (index if index != 1 else meanwhile[key]) for key, index in before.items())
    assert {meanwhile[key] for key, index in before.items() if index == 1} == {0, 2}, "both get some of its keys"
    with restarted(servers[1]) as again:
        wait_until(lambda: keys_of(server, [servers[0], again, servers[2]]) == before, "the original mapping returns")


def test_upstream_hash_is_independent_of_server_order(start, backends):
    servers = backends(3)
    by_order = [keys_of(start(*order, keys="Balance hash", options="hash=path"), servers)
                for order in (servers, servers[::-1])]
    assert by_order[0] == by_order[1]


def test_upstream_sticky_survives_reload_with_reordered_servers(start, backends):
    servers = backends(3)
    server = start(*servers, options="sticky=S")
    cookie = server.get("/")["Set-Cookie"].split(";")[0]
    index = shares(*servers).index(1)
    server.config.write_text(server.config.read_text().replace(group(*servers), group(*servers[::-1])))
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    ask(server, 6, fields=[("Cookie", cookie)])
    assert shares(*servers)[index] == 7


def test_upstream_socket_path_is_relative_to_its_config_file(monkey, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "group.conf").write_text("[UPSTREAM]\n    Name group\n    Server unix:app.sock\n")
    with Backend(lambda request: response("here"), family=socket.AF_UNIX, at=str(folder / "app.sock")):
        server = monkey(plugins=["proxy"], top=f"@INCLUDE {folder}/group.conf\n", sections="[ROUTES]\n    /* proxy http://group\n")
        assert server.get("/").text == "here"


# ---- Sticky cookies ----

def cookie_of(reply):
    return reply["Set-Cookie"].split(";")[0]


def fnv(text):
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 % 2 ** 64
    return f"{value:016x}"


def test_sticky_cookie_reveals_no_address_and_cannot_be_forged(start, backends):
    """If the hash had no key, clients could guess addresses."""
    a, b = backends(2)
    server = start(a, f"{b.address} backup", options="sticky=S")
    assert cookie_of(server.get("/")) != f"S={fnv(f'group{chr(10)}{a.address}')}"
    for value in (fnv(f"group\n{b.address}"), fnv(b.address), "0" * 16):
        ask(server, 1, fields=[("Cookie", f"S={value}")])
    assert shares(a, b) == [4, 0]


def test_sticky_cookie_of_backup_applies_only_while_it_serves(start, backends):
    a, b = backends(2)
    server = start(a, f"{b.address} backup", keys="MaxFails 1\nHoldDown 50ms", options="sticky=S")
    a.stop()
    cookie = cookie_of(server.get("/"))
    ask(server, 2, fields=[("Cookie", cookie)])
    assert len(b.requests) == 3
    with restarted(a) as again:
        wait_until(lambda: server.get("/").status == 200 and again.requests, "the first one serves again")
        before = len(b.requests)
        ask(server, 3, fields=[("Cookie", cookie)])
        assert len(b.requests) == before


def test_sticky_cookie_survives_reload_and_differs_between_servers(start, backends):
    a, b = backends(2)
    server, other = (start(a, b, options="sticky=S") for _ in range(2))
    first = {cookie_of(server.get("/")) for _ in range(2)}
    reload(server)
    assert {cookie_of(server.get("/")) for _ in range(2)} == first
    assert len(first) == 2 and not first & {cookie_of(other.get("/")) for _ in range(2)}


def test_sticky_cookie_is_shared_by_machines_with_one_key_file(start, backends, tmp_path):
    a, b = backends(2)
    (tmp_path / "secret").write_text("0123456789abcdef0123456789abcdef\n")
    keys = f"KeyFile {tmp_path}/secret"
    server, other = (start(a, b, keys=keys, options="sticky=S") for _ in range(2))
    assert {cookie_of(server.get("/")) for _ in range(2)} == {cookie_of(other.get("/")) for _ in range(2)}


@pytest.mark.parametrize("text, message", [("short\n", "has 5 characters: a secret needs at least 32"), ("", "has 0 characters"), (None, "cannot be read")])
def test_sticky_key_file_that_is_invalid_is_rejected(run, tmp_path, text, message):
    conf = tmp_path / "monkey.conf"
    if text is not None:
        (tmp_path / "secret").write_text(text)
    conf.write_text(f"[UPSTREAM]\n{NAME}{SERVER}    KeyFile secret\n[PLUGINS]\n    Load proxy\n[HOST]\n    DocumentRoot .\n"
                    "[ROUTES]\n    /* proxy http://group\n")
    done = run("-t", "-c", conf)
    assert done.code == 3 and message in done.err and f"{conf}:4:13: error" in done.err


def test_sticky_client_does_not_wait_for_busy_server(start):
    """A sticky client uses another server while all connections of its own server are busy."""
    gate = threading.Event()

    def reply(request):
        if request.target == "/hold":
            gate.wait(20)
        return response("fine")

    with Backend(reply) as a, Backend() as b:
        server = start(a, b, keys="MaxConnections 1", options="sticky=S")
        cookie = ("Cookie", server.get("/")["Set-Cookie"].split(";")[0])
        assert shares(a, b) == [1, 0]
        with server.connect() as holder:
            holder.ask("/hold", fields=[cookie])
            wait_until(lambda: len(a.requests) == 2, "the connection is in use")
            assert server.get("/", fields=[cookie]).status == 200 and shares(a, b) == [2, 1]
            gate.set()
            assert holder.read().text == "fine"
        ask(server, 2, fields=[cookie])
        assert shares(a, b) == [4, 1]


def test_upstream_backup_serves_only_while_others_are_down(start, backends):
    a, b = backends(2)
    server = start(a, f"{b.address} backup", keys="MaxFails 1\nHoldDown 50ms")
    ask(server, 5)
    a.stop()
    ask(server, 5)
    assert shares(a, b) == [5, 5]
    with restarted(a) as again:
        wait_until(lambda: server.get("/").status == 200 and again.requests, "the first one serves again")
        before = len(b.requests)
        ask(server, 5)
        assert len(b.requests) == before


# ---- Health checks ----

def test_upstream_slow_start_ramps_up_recovered_server(start, backends):
    a, b = backends(2)
    server = start(a, b, keys="MaxFails 1\nHoldDown 50ms\nSlowStart 1h")
    ask(server, 4)
    a.stop()
    ask(server, 2)
    with restarted(a) as again:
        wait_until(lambda: server.get("/").status == 200 and again.requests, "a retry of the server")
        wait_until(lambda: states(server) == ["slow_start", "up"], "its recovery")
        again.requests.clear()
        ask(server, 30)
        assert len(again.requests) <= 1


class HealthCheckedBackend(Backend):
    """The backend's /health responds as the test specifies: with a status, or None for no response."""

    def __init__(self):
        self.health, self.checks = "204 No Content", []
        super().__init__(self._answer)

    def _answer(self, request):
        if request.target != "/health?deep":
            return response("x")
        self.checks.append(request)
        self.requests.remove(request)
        while self.health is None:
            time.sleep(.01)
        return response(status=self.health)


def test_health_check_failures_and_recovery_change_state(start):
    with HealthCheckedBackend() as a, HealthCheckedBackend() as b:
        server = start(a, b, keys=CHECKED, workers=2)
        wait_until(lambda: len(a.checks) > 1, "checks")
        for bad in ("500 Broken", "400 Bad", None):
            a.health = bad
            wait_until(lambda: states(server) == ["down", "up"], f"{bad} is noticed")
            before = len(a.requests)
            ask(server, 6)
            assert len(a.requests) == before, "it gets no requests"
            a.health = "302 Found"
            wait_until(lambda: states(server) == ["up", "up"], "it is up again")
            ask(server, 6)
            assert len(a.requests) > before
        request = a.checks[0]
        assert (request.method, request.get("User-Agent"), request.get("Connection")) == ("GET", "monkey-health", "close")
        assert request.get("Host") == a.address
        for why in ("answers with status 500", "answers with status 400", "does not answer in time"):
            server.err.wait_for(rf"\[warn\] .*upstream group: the server {a.address} fails its health check: it {why}")
        server.err.wait_for(rf"\[info\] .*upstream group: the server {a.address} passes its health check", count=3)


def test_health_check_connect_only_works(start, backends):
    a, b = backends(2)
    server = start(a, b, keys="HealthCheck connect\nHealthInterval 100ms\nHealthTimeout 1s")
    a.stop()
    wait_until(lambda: states(server) == ["down", "up"], "it is down")
    with restarted(a):
        wait_until(lambda: states(server) == ["up", "up"], "it is up again")


def test_health_check_failed_on_all_servers_gets_error(start):
    with HealthCheckedBackend() as a:
        a.health = "503 Busy"
        server = start(a, keys=CHECKED)
        wait_until(lambda: states(server) == ["down"], "the failure is noticed")
        assert server.get("/").status in (502, 503) and not a.requests


def test_upstream_max_fails_off_keeps_servers_up(start, backends):
    a, b = backends(2)
    server = start(a, b, keys="MaxFails off")
    a.stop()
    ask(server, 10)
    assert states(server) == ["up", "up"]


def test_upstream_retry_budget_off_prevents_retries(start, backends):
    (a,), (b,) = backends(1, reply=lambda request: None), backends(1)
    server = start(a, b, keys="RetryBudget off\nMaxFails off")
    statuses = [server.get("/").status for _ in range(10)]
    assert collections.Counter(statuses) == {502: 5, 200: 5}


# ---- Connections ----

def test_upstream_server_with_full_accept_queue_is_skipped(start, backends):
    a, = backends(1)
    with socket.socket() as deaf, contextlib.ExitStack() as stack:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for _ in range(3):  # until the accept queue of the backend is full
            full = stack.enter_context(socket.socket())
            full.setblocking(False)
            full.connect_ex(deaf.getsockname())
        server = start("127.0.0.1:%d" % deaf.getsockname()[1], a, keys="ConnectTimeout 100ms\nMaxFails 1")
        ask(server, 6)
        assert shares(a) == [6]
        wait_until(lambda: states(server) == ["down", "up"], "the state is shown")


@pytest.fixture
def full_socket(tmp_path):
    """The path of a unix socket with a full accept queue."""
    with contextlib.ExitStack() as stack:
        deaf = stack.enter_context(socket.socket(socket.AF_UNIX))
        deaf.bind(str(tmp_path / "full"))
        deaf.listen(0)
        error = 0
        while not error:
            full = stack.enter_context(socket.socket(socket.AF_UNIX))
            full.setblocking(False)
            error = full.connect_ex(deaf.getsockname())
        yield deaf.getsockname()


def test_upstream_unix_server_with_full_accept_queue_gets_503(start, full_socket):
    server = start(f"unix:{full_socket}", keys="QueueTimeout 1h")
    response = server.get("/")
    assert response.status == 503 and response["Retry-After"]
    server.err.wait_for("the queue of the server's socket is full")


def test_upstream_unix_server_with_full_accept_queue_is_skipped(start, full_socket, backends):
    a, = backends(1)
    server = start(f"unix:{full_socket}", a, keys="MaxFails 1")
    ask(server, 6)
    assert shares(a) == [6]
    wait_until(lambda: states(server) == ["down", "up"], "the state is shown")


def test_upstream_keep_alive_timeout_closes_idle_connections(start, backends):
    a, = backends(1)
    server = start(a, keys="KeepAliveTimeout 50ms")
    ask(server, 2)
    assert a.connections == 1
    wait_until(lambda: not a.open, "the connection ends")
    ask(server, 1)
    assert a.connections == 2


def test_upstream_keep_alive_connections_zero_keeps_none(start, backends):
    a, = backends(1)
    ask(start(a, keys="KeepAliveConnections 0"), 5)
    assert a.connections == 5


# ---- Wait queues ----

def waiting(server, n):
    wait_until(lambda: status(server)["upstreams"][0]["waiting"] == n, f"{n} requests wait")


def test_upstream_queue_is_fifo_across_workers(start):
    with HoldingBackend() as slow, contextlib.ExitStack() as stack:
        server = start(slow, keys="MaxConnections 1", workers=2)
        clients = []
        for i in range(8):
            clients += stack.enter_context(open_requests(server, 1, f"/{i}"))
            wait_until(lambda: slow.requests, "the first one is served") if i == 0 else waiting(server, i)
            time.sleep(.02)  # simultaneous requests have no defined order
        slow.release()
        assert [c.read().status for c in clients] == [200] * 8
        assert [request.target for request in slow.requests] == [f"/{i}" for i in range(8)]


def test_upstream_full_queue_refuses_requests(start):
    with HoldingBackend() as slow:
        server = start(slow, keys="MaxConnections 1\nMaxQueue 2\nMaxConnectionsPerAddress 0")
        with open_requests(server, 1, "/first") as first:
            wait_until(lambda: slow.requests, "the first request is served")
            with open_requests(server, 2, "/x") as others:
                waiting(server, 2)
                assert server.get("/more").status == 503
                slow.release()
                assert [c.read().status for c in (*first, *others)] == [200] * 3
        ask(server, 3)


def test_upstream_queue_timeout_refuses_requests(start):
    with HoldingBackend() as slow:
        server = start(slow, keys="MaxConnections 1\nQueueTimeout 100ms")
        with open_requests(server, 1, "/first") as first:
            wait_until(lambda: slow.requests, "the first request is served")
            with open_requests(server, 2, "/x") as others:
                assert [c.read().status for c in others] == [503] * 2
            slow.release()
            assert first[0].read().status == 200
        ask(server, 3)


def test_upstream_client_disconnect_leaves_queue(start):
    with HoldingBackend() as slow:
        server = start(slow, keys="MaxConnections 1")
        with open_requests(server, 1, "/first") as first:
            wait_until(lambda: slow.requests, "the first request is served")
            with open_requests(server, 3, "/gone"):
                waiting(server, 3)
            waiting(server, 0)
            slow.release()
            assert first[0].read().status == 200
        ask(server, 2)
        assert "/gone" not in [request.target for request in slow.requests]


def test_upstream_connections_of_dead_worker_are_freed(start):
    with HoldingBackend() as slow:
        server = start(slow, keys="MaxConnections 1", workers=2)
        server.allow("was killed by signal")
        with open_requests(server, 3, "/lost"):
            wait_until(lambda: slow.requests, "one is served")
            for pid in server.workers:
                os.kill(pid, signal.SIGKILL)
        slow.release()
        wait_until(lambda: server.err.text.count("was killed by signal") == 2, "both deaths are noticed")
        ask(server, 4)
        waiting(server, 0)


@pytest.mark.processes("counts how often a worker sleeps")
def test_upstream_waiting_requests_do_not_wake_their_worker(start):
    with HoldingBackend() as slow:
        server = start(slow, keys="MaxConnections 1\nQueueTimeout 1m")
        with open_requests(server, 1, "/first") as first:
            wait_until(lambda: slow.requests, "the first request is served")
            with open_requests(server, 3, "/x") as others:
                waiting(server, 3)
                before = sleeps(server.workers[0])
                time.sleep(2)
                assert sleeps(server.workers[0]) - before < 15  # a queued request must not be polled every 50 ms
                slow.release()
                assert [c.read().status for c in (*first, *others)] == [200] * 4


# The master has removed this worker from its set of workers, so it starts no replacement.
@pytest.mark.processes("kills one of a former configuration")
def test_upstream_waiting_request_is_served_after_worker_death(start):
    with HoldingBackend() as slow:
        server = start(slow, keys="MaxConnections 1\nQueueTimeout 1m")
        server.allow("was killed by signal")
        with open_requests(server, 1, "/old"):
            wait_until(lambda: slow.requests, "the request is served")
            old = server.workers[0]
            reload(server)
            with open_requests(server, 2, "/new") as new:
                waiting(server, 2)
                os.kill(old, signal.SIGKILL)
                wait_until(lambda: "/new" in [request.target for request in slow.requests], "the next one is served")
                slow.release()
                assert [c.read().status for c in new] == [200] * 2


# ---- Shares per client ----

def hold(server, stack, n, target="/held", source="127.0.0.1", fields=()):
    """Opens n slow requests from one address."""
    clients = [stack.enter_context(server.connect(source=source)) for _ in range(n)]
    for each in clients:
        each.ask(target, fields=fields)
    return clients


@pytest.mark.parametrize("keys, workers, share", [("", 1, 2), ("", 2, 2), ("MaxConnectionsPerAddress 3", 2, 3), ("MaxConnectionsPerAddress 1", 1, 1)])
def test_upstream_one_address_leaves_connections_for_others(start, keys, workers, share):
    with HoldingBackend() as slow, contextlib.ExitStack() as stack:
        server = start(slow, keys=f"MaxConnections 4\n{keys}", workers=workers)
        many = hold(server, stack, 8)
        wait_until(lambda: len(slow.requests) == share, "it has its share")
        waiting(server, 8 - share)
        others = [hold(server, stack, 1, "/other", f"127.0.0.{77 + i}")[0] for i in range(4 - share)]
        wait_until(lambda: len(slow.requests) == 4, "other clients have the rest")
        assert [request.target for request in slow.requests].count("/held") == share
        slow.release()
        assert [c.read().status for c in (*many, *others)] == [200] * (12 - share)


def test_upstream_one_address_may_use_all_connections_if_configured(start):
    with HoldingBackend() as slow, contextlib.ExitStack() as stack:
        server = start(slow, keys="MaxConnections 4\nMaxConnectionsPerAddress 0")
        hold(server, stack, 4)
        wait_until(lambda: len(slow.requests) == 4, "all are in use")


def test_upstream_kept_connections_are_shared_fairly(start):
    """All backend connections are already open when one address sends enough requests to use all of them."""
    with HoldingBackend() as slow, contextlib.ExitStack() as stack:
        server = start(slow, keys="MaxConnections 4")
        with contextlib.ExitStack() as first:
            warm = [c for i in (1, 2) for c in hold(server, first, 2, source=f"127.0.0.{i}")]
            wait_until(lambda: slow.connections == 4, "all connections are open")
            slow.release()
            assert [c.read().status for c in warm] == [200] * 4
        slow.hold()
        hold(server, stack, 4, "/again")
        wait_until(lambda: len(slow.requests) == 6, "it has its share")
        hold(server, stack, 2, "/other", "127.0.0.77")
        wait_until(lambda: [request.target for request in slow.requests].count("/other") == 2, "the others have theirs")
        assert [request.target for request in slow.requests].count("/again") == 2


@pytest.mark.parametrize("first, second, is_one", [
    ("192.0.2.1", "192.0.2.1", True), ("192.0.2.1", "192.0.2.2", False), ("2001:db8::1", "2001:db8::2", True),
    ("2001:db8::1", "2001:db8:0:1::1", False)])
def test_upstream_share_of_clients_behind_trusted_proxy_is_per_client(start, first, second, is_one):
    with HoldingBackend() as slow, contextlib.ExitStack() as stack:
        server = start(slow, keys="MaxConnections 4", others=["security"],
                       more="[SECURITY]\n    TrustedProxy 127.0.0.0/8\n    RealAddress X-Forwarded-For\n")
        hold(server, stack, 2, fields=[("X-Forwarded-For", first)])
        wait_until(lambda: len(slow.requests) == 2, "the first client has its share")
        hold(server, stack, 1, "/second", fields=[("X-Forwarded-For", second)])
        if is_one:
            waiting(server, 1)
        else:
            wait_until(lambda: len(slow.requests) == 3, "the second client counts separately")


def test_upstream_one_address_leaves_queue_slots_for_others(start):
    with HoldingBackend() as slow, contextlib.ExitStack() as stack:
        server = start(slow, keys="MaxConnections 2\nMaxQueue 4")
        first = hold(server, stack, 3)
        waiting(server, 2)
        with server.connect() as c:
            assert c.get("/more").status == 503
        others = hold(server, stack, 3, "/other", "127.0.0.77")
        waiting(server, 4)
        slow.release()
        assert [c.read().status for c in (*first, *others)] == [200] * 6


# ---- Reloads ----

def reload(server):
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")


def test_upstream_reload_keeps_server_down(start, backends):
    a, b = backends(2)
    server = start(a, b, keys="HoldDown 1h\nMaxFails 1", workers=2)
    a.stop()
    with server.connect() as c:
        wait_until(lambda: c.get("/").status and states(server) == ["down", "up"], "its failure")
    with restarted(a) as back:
        reload(server)
        assert states(server) == ["down", "up"]
        ask(server, 6)
        assert not back.connections


def change(server, old, new):
    text = server.config.read_text()
    assert text.count(f"    {old}\n") == 1
    server.config.write_text(text.replace(f"    {old}\n", new and f"    {new}\n"))
    reload(server)


def test_upstream_reload_that_removes_check_brings_server_up(start):
    with HealthCheckedBackend() as a:
        a.health = "404 Not Found"
        server = start(a, keys=CHECKED, workers=2)
        wait_until(lambda: states(server) == ["down"], "its check fails")
        assert server.get("/").status == 503
        change(server, "HealthCheck /health?deep", "")
        assert server.get("/").text == "x"
        wait_until(lambda: states(server) == ["up"], "the state is shown")


@pytest.mark.parametrize("old, new", [("HoldDown 1h", "HoldDown 1s"), ("MaxFails 1", "MaxFails off")])
def test_upstream_reload_applies_shorter_hold_down(start, backends, old, new):
    a, b = backends(2)
    server = start(a, b, keys="HoldDown 1h\nMaxFails 1")
    a.stop()
    with server.connect() as c:
        wait_until(lambda: c.get("/").status and states(server) == ["down", "up"], "its failure")
    with restarted(a) as back:
        change(server, old, new)
        ask(server, 6)
        assert back.requests
        wait_until(lambda: states(server) == ["up", "up"], "the state is shown")


def test_upstream_reload_keeps_connection_limit(start):
    with HoldingBackend() as slow:
        server = start(slow, keys="MaxConnections 1")
        with open_requests(server, 1, "/old") as old:
            wait_until(lambda: slow.requests, "the old request is served")
            reload(server)
            with open_requests(server, 1, "/new") as new:
                waiting(server, 1)
                assert slow.connections == 1
                slow.release()
                assert old[0].read().status == 200 and new[0].read().status == 200
