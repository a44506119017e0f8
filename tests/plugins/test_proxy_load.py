# SPDX-License-Identifier: Apache-2.0
"""Backends are killed, frozen and restarted in every phase while clients send requests: each response belongs to its request,
or it is a 502 or 504, or it is visibly truncated. No request is lost in reloads and upgrades under load.
"""
import base64
import contextlib
import hashlib
import re
import signal
import socket
import threading
from pathlib import Path

import pytest

from backend import Backend
from upstream_group import HoldingBackend, open_requests, group
from numbered_backend import FAULTS
from numbered_clients import SIZES, Clients, NumberedServer
from proc import wait_until
from prometheus import parse


@pytest.fixture
def back(tmp_path):
    with NumberedServer(tmp_path) as each:
        yield each


@pytest.fixture
def proxy(monkey):
    """Starts a server with two workers, which proxy to these backends."""
    def start(*servers, options="", keys="", **how):
        return monkey(plugins=["proxy"], workers=2, server="MaxBodySize 1M", top=group(*servers, keys=keys),
                      sections=f"[ROUTES]\n    /* proxy http://group {options}\n", **how)

    return start


def check_posts_ran_once(*servers):
    posts = [number for each in servers for number in each.numbers("POST")]
    assert len(set(posts)) == len(posts), "a POST was executed twice"


# ---- Servers that break ----

def break_it(clients, back, fault):
    """Makes a request break the backend; then the backend works again and serves requests immediately."""
    how, phase = fault.split("-")
    is_broken = {"kill": back.has_ended, "stop": back.has_stopped, "close": lambda seconds: True}[how]
    while True:  # the request may not have reached the backend, or not on a reused connection
        result = clients.ask(method="POST", upload=3000, size=3000, fault=fault)
        assert result in ((502, 504, "cut") if phase != "reuse" else ("ok", 502, 504)), (fault, result)
        if is_broken(.3):
            break
    if how == "kill":
        back.restart()
    elif how == "stop":
        clients.more(1)
        back.go_on()
    assert how == "stop" or clients.ask(protocol="h2") == "ok"


@pytest.mark.parametrize("how, unix, keys", [("kill", False, ""), ("kill", True, "MaxConnections 3"), ("stop", False, ""),
                                             ("stop", True, "MaxConnections 3"), ("close", False, "MaxConnections 3")])
def test_proxy_load_survives_faults_in_each_phase(proxy, tmp_path, how, unix, keys):
    """MaxConnections, if set, allows fewer backend connections than the five clients could use."""
    patience = "response_timeout=150ms read_timeout=150ms" if how == "stop" else ""
    with NumberedServer(tmp_path, unix) as back, Clients(proxy(back, options=patience, keys=keys)) as clients:
        for fault in FAULTS:
            if fault.startswith(how):
                break_it(clients, back, fault)
                clients.more(1 if how == "stop" else 3)
        wait_until(lambda: back.go_on() or clients.ask() == "ok", "a response")
        clients.check(502, "cut", *[504] * (how == "stop"))
        check_posts_ran_once(back)


def unaccepted(back):
    """Returns the number of connections in the backend's accept queue."""
    address, port = back.address.split(":")
    at = f"{socket.inet_aton(address)[::-1].hex().upper()}:{int(port):04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    return next(int(words[4].split(":")[1], 16) for words in lines if words[1] == at and words[3] == "0A")


def test_proxy_load_survives_backend_death_before_accept(proxy, back):
    server = proxy(back)
    with Clients(server, hows=["close"]) as clients:  # each request needs a new connection
        for _ in range(3):
            back.freeze()
            with open_requests(server, 3) as waiting:
                wait_until(lambda: unaccepted(back) >= 2, "queued connections")
                back.restart()
                assert [c.read().status for c in waiting].count(502) >= 2
            assert clients.ask() == "ok"
            clients.more(2)
        clients.check(502, "cut")
        check_posts_ran_once(back)


def test_proxy_load_idempotent_requests_survive_death_of_one_server(proxy, tmp_path):
    with NumberedServer(tmp_path) as a, NumberedServer(tmp_path) as b:
        server = proxy(a, b, keys="HoldDown 50ms\nRetryBudget 100")
        with Clients(server, methods=["GET", "PUT"], sizes=SIZES[:2]) as clients:
            for phase in ("content", "silent", "head", "body"):
                assert clients.ask(method="POST", upload=3000, fault=f"kill-{phase}") in (502, "cut")
                dead = wait_until(lambda: [each for each in (a, b) if each.has_ended()], "the end of one")[0]
                clients.more(3)
                dead.restart()
                clients.more(3)
            for each in (a, b, a, b):
                each.kill()
                clients.more(3)
                each.start()
            clients.check()


# ---- Reloads and upgrades ----

def echo_upper_case(connection):
    """The backend at the other end of the tunnels."""
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(65536)
    key = re.search(rb"(?i)sec-websocket-key: (\S+)", head)[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                       b"Sec-WebSocket-Accept: %s\r\n\r\n" % base64.b64encode(hashlib.sha1(key).digest()))
    while data := connection.recv(65536):
        connection.sendall(data.upper())


class Tunnel:
    KEYS = [("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")]

    def __init__(self, server, protocol):
        self.client = server.connect(protocol=protocol)
        if protocol == "h2":
            self.client.wait(lambda: self.client.settings_received)
            self.client.ask("/tunnel", "CONNECT", self.KEYS[:1], streamed=True, protocol="websocket")
            assert self.client.read_head().status == 200
        else:
            self.client.ask("/tunnel", fields=[("Connection", "Upgrade"), ("Upgrade", "websocket"), *self.KEYS])
            assert self.client.read_head().status == 101

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()

    def say(self, text):
        self.client.more(text)
        assert self.client.read_exactly(len(text)) == text.upper()


@pytest.mark.parametrize("protocol", ["h1", "h1-tls", "h2", "h2-tls"], indirect=True)
def test_tunnel_carries_much_data_in_both_directions(monkey, protocol):
    data = b"".join(b"%d;" % i for i in range(200_000))
    with Backend(script=echo_upper_case) as back:
        server = monkey(plugins=["proxy"], sections=f"[ROUTES]\n    /tunnel proxy http://{back.address}\n")
        with Tunnel(server, protocol[:2]) as tunnel:
            sender = threading.Thread(target=tunnel.client.more, args=(data,))
            if protocol.startswith("h1"):
                sender.start()
            else:
                sender.run()  # this thread reads while the sender writes
            assert tunnel.client.read_exactly(len(data)) == data
            if protocol.startswith("h1"):
                sender.join()
            tunnel.say(b"good bye")


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_tunnel_ends_with_either_end(monkey, protocol):
    with Backend(script=echo_upper_case) as back:
        server = monkey(plugins=["proxy"], sections=f"[ROUTES]\n    /tunnel proxy http://{back.address}\n")
        with Tunnel(server, protocol) as tunnel, Tunnel(server, protocol) as other:
            tunnel.say(b"hello")
            other.client.close()
            wait_until(lambda: len(back.open) == 1, "the other end to notice")
            back.drop()
            if protocol == "h2":
                tunnel.client.wait(lambda: tunnel.client.stream.is_over)
            else:
                with contextlib.suppress(ConnectionResetError):
                    assert tunnel.client.read_to_end() == b""


def reload(server, _, n):
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves", count=n)


def upgrade(server, watch, n):
    server.tell(signal.SIGUSR2)
    new = watch(int(server.err.wait_for(r"the new program is process (\d+)", n)[1]))
    server.err.wait_for(rf"{new.pid}: monkey \S+ serves with")
    return new


@pytest.mark.processes("it does not reload")
@pytest.mark.parametrize("change, times", [(reload, 3), (upgrade, 1)])
def test_proxy_reload_and_upgrade_lose_nothing(monkey, back, watch, change, times):
    """The upgrade loses no request in progress, no request that waits for a connection, and no tunnel."""
    sections = group(back) + "[ROUTES]\n    /metrics metrics\n    /slow proxy http://slow\n    /tunnel proxy http://{}\n" \
                             "    /* proxy http://group\n"
    with HoldingBackend() as slow, Backend(script=echo_upper_case) as other, contextlib.ExitStack() as stack:
        server = monkey(plugins=["proxy", "metrics"], workers=2, server="MaxBodySize 1M",
                        sections=f"[UPSTREAM]\n    Name slow\n    Server {slow.address}\n    MaxConnections 2\n    MaxConnectionsPerAddress 0\n"
                                 + sections.format(other.address))
        tunnels = [stack.enter_context(Tunnel(server, protocol)) for protocol in ("h1", "h2")]
        waiting = stack.enter_context(open_requests(server, 5, "/slow"))
        wait_until(lambda: parse(server.get("/metrics").text)["monkey_upstream_waiting", {"server": slow.address}] == 3, "a queue")
        clients = stack.enter_context(Clients(server))
        for round_ in range(times):
            clients.more(3)
            new = change(server, watch, round_ + 1)
            for each in tunnels:
                each.say(b"turn %d" % round_)
        waiting += stack.enter_context(open_requests(server, 2, "/slow"))
        clients.more(3).check()
        slow.release()
        assert [c.read().text for c in waiting] == ["late"] * 7
        for each in tunnels:
            each.say(b"good bye")
        check_posts_ran_once(back)
        if new:
            new.tell(signal.SIGTERM)
            new.wait()
