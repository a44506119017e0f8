# SPDX-License-Identifier: Apache-2.0
"""Tunnels over HTTP/1.1 and HTTP/2: a handler's reads and writes, whatever the client does (tests/plugins/api/tunnels.c)."""
import base64
import hashlib
import os
import signal
import socket
import ssl
import threading
import time

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect as websocket

import browser
from client import Closed
from monkey import ENVIRONMENT, PROGRAM, ROOT
from proc import memory_kb, wait_until
from protocols import DEFAULT

BUILT = ROOT / "build" / "dev" / "tests" / "plugins"

pytestmark = pytest.mark.skipif(not BUILT.exists() or PROGRAM.parent != BUILT.parents[1],
                                reason="the plugins of the tests are built with the program in build/dev")

# MONKEY_PROTOCOL=h1-tls runs the other tests over TLS.
half_closes = pytest.mark.skipif(DEFAULT != "h1", reason="Python cannot end its half of TLS and still read")

ROUTES = """
[ROUTES]
    /echo        tunnel-echo
    /both        tunnel-both
    /first       tunnel-first
    /bye         tunnel-bye
    /deaf        tunnel-deaf
    /alarm       tunnel-alarm
    /idle        tunnel-idle
    /breaks      tunnel-breaks
    /two         tunnel-two
    /websocket   websocket-echo
    /made        made
    /*           static
"""
WISH = [("Connection", "Upgrade"), ("Upgrade", "example/2")]
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
HANDSHAKE = [("Connection", "keep-alive, Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
             ("Sec-WebSocket-Key", KEY)]


@pytest.fixture
def start(monkey, site, tmp_path):
    """Starts a server with all handlers and small limits, none of which may affect a tunnel."""
    site.add("index.html", "hello")
    log = f"AccessLog {tmp_path}/access.log\n"
    small = "MaxBodySize 10\nHandlerTimeout 1s\nMinRate 1M\nMinRateInterval 1s\n"

    def server(keys="", plugins=("tunnels", "tunnel_socket", "body_sources"), **how):
        how = {"workers": 1, "sections": ROUTES, "listen": ["127.0.0.1:0", f"unix:{tmp_path}/socket"]} | how
        return monkey(plugins=[BUILT / f"monkey-{name}.so" for name in plugins], server=log + small + keys, **how)

    return server


@pytest.fixture
def server(start):
    return start()


def enter(c, target, fields=WISH, **how):
    """Requests a tunnel, and expects the handler to open it."""
    reply = c.ask(target, fields=fields, **how).read_head()
    assert reply.status == 101, reply.head
    return reply


def records(tmp_path, count):
    path = tmp_path / "access.log"
    wait_until(lambda: path.exists() and path.read_text().count("\n") >= count, "the log records are written")
    return path.read_text().splitlines()


# ---- The handshake ----


def test_upgrade_response_has_required_headers(server):
    with server.connect() as c:
        reply = enter(c, "/echo")
        assert (reply["Upgrade"], reply.tokens("Connection"), reply["X-Tunnel"]) == ("example/2", ["upgrade"], "example/2")
        assert not {"content-length", "transfer-encoding"} & {name.lower() for name, _ in reply.fields}
        assert reply["Date"] and reply["Server"]


def test_websocket_accept_matches_example_of_rfc(server):
    with server.connect() as c:
        reply = enter(c, "/websocket", HANDSHAKE)
        assert (reply["Sec-WebSocket-Accept"], reply["Upgrade"]) == ("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "websocket")


@pytest.mark.parametrize("fields, tunnel", [
    ([("Connection", "upgrade"), ("Upgrade", "WebSocket")], "websocket"),
    ([("Connection", "x, UPGRADE"), ("Upgrade", "a/1, websocket")], "a/1"),
    ([("Connection", "close, upgrade"), ("Upgrade", ", a, b")], "a"),
    ([("Connection", "close"), ("Connection", "upgrade"), ("Upgrade", "a"), ("Upgrade", "b")], "a"),
])
def test_upgrade_selects_first_supported_protocol(server, fields, tunnel):
    if tunnel == "websocket":
        fields = fields + HANDSHAKE[2:]
    with server.connect() as c:
        assert enter(c, "/echo", fields)["X-Tunnel"] == tunnel


@pytest.mark.parametrize("how", [
    {"fields": [("Upgrade", "a")]},
    {"fields": [("Connection", "upgrade")]},
    {"fields": [("Connection", "upgrade"), ("Upgrade", "")]},
    {"fields": [("Connection", "upgrade"), ("Upgrade", "a b")]},
    {"fields": [("Connection", "upgrade"), ("Upgrade", "a/")]},
    {"fields": [("Connection", "upgrade"), ("Upgrade", "/1")]},
    {"fields": [("Connection", "upgrade"), ("Upgrade", "a/1/2")]},
    {"fields": WISH, "version": "1.0"},
    {"fields": WISH, "method": "HEAD"},
    {"fields": WISH, "body": b"content"},
    {"fields": [*WISH, ("Transfer-Encoding", "chunked")], "body": b"0\r\n\r\n"},
    {"fields": WISH, "method": "POST", "body": b"content"},
], ids=lambda how: " ".join(map(str, how)))
def test_upgrade_handler_declines_request_without_upgrade(server, how):
    """The next handler receives the declined request like any other request."""
    reply = server.get("/echo", **how)
    assert reply.status in (404, 405) and "Upgrade" not in reply


def test_upgrade_is_ignored_by_handlers_without_tunnels(server):
    with server.connect() as c:
        assert c.get("/", fields=WISH).text == "hello"
        assert c.get("/made?size=20", fields=HANDSHAKE).status == 200
        assert c.is_open()


@pytest.mark.parametrize("field, value, status", [
    ("Sec-WebSocket-Version", "12", 426), ("Sec-WebSocket-Version", "13, 8", 426), ("Sec-WebSocket-Version", "", 426),
    ("Sec-WebSocket-Version", None, 400), ("Sec-WebSocket-Key", None, 400), ("Sec-WebSocket-Key", "", 400),
    ("Sec-WebSocket-Key", KEY[:-4], 400), ("Sec-WebSocket-Key", KEY + "AAAA", 400), ("Sec-WebSocket-Key", "*" * 24, 400),
    ("Sec-WebSocket-Key", base64.b64encode(bytes(17)).decode(), 400),
])
@pytest.mark.parametrize("target", ["/websocket", "/echo"])
def test_websocket_invalid_handshake_is_refused(server, target, field, value, status):
    fields = [(n, value if n == field else v) for n, v in HANDSHAKE if n != field or value is not None]
    with server.connect() as c:
        reply = c.get(target, fields=fields)
        assert reply.status == status and "Sec-WebSocket-Accept" not in reply
        if status == 426:
            assert (reply["Sec-WebSocket-Version"], reply["Upgrade"]) == ("13", "websocket")
            assert "upgrade" in reply.tokens("Connection")
        assert c.is_open()


@pytest.mark.parametrize("name", ["Sec-WebSocket-Version", "Sec-WebSocket-Key"])
def test_websocket_duplicate_handshake_header_is_refused(server, name):
    fields = HANDSHAKE + [(n, v) for n, v in HANDSHAKE if n == name]
    assert server.get("/websocket", fields=fields).status == (426 if "Version" in name else 400)


def test_upgrade_accepted_twice_is_harmless(server):
    for how in ("", "?twice"):
        with server.connect() as c:
            enter(c, f"/two{how}")
            assert c.send(b"abc").read_exactly(3) == b"abc"


def test_upgrade_accepted_may_still_be_refused(server):
    with server.connect() as c:
        assert c.get("/two?next", fields=WISH).status == 404
        assert c.get("/two?refuse", fields=WISH).status == 500
        assert c.is_open()


# ---- Data in both directions ----


@half_closes
def test_tunnel_echoes_data(server):
    data = os.urandom(300000)
    with server.connect() as c:
        enter(c, "/echo")
        assert c.send(b"a").read_exactly(1) == b"a"
        thread = threading.Thread(target=c.send, args=[data])
        thread.start()
        assert c.read_exactly(len(data)) == data
        thread.join()
        c.shut().expect_end()


@half_closes
def test_tunnel_owns_bytes_after_the_head(server):
    """The server forwards data unchanged, even if it looks like a request."""
    data = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 1000
    head = b"GET /echo HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
    with server.connect() as c:
        c.send(head + data).read_head()
        assert c.read_exactly(len(data)) == data
        c.shut().expect_end()


def test_tunnel_head_and_data_may_arrive_byte_by_byte(server):
    with server.connect() as c:
        c.send_slowly(b"GET /echo HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhello")
        assert c.read_head().status == 101
        assert c.read_exactly(5) == b"hello"


def test_tunnel_may_follow_pipelined_requests(server):
    wish = b"GET /first HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
    with server.connect() as c:
        c.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 3 + wish + b"abc")
        for _ in range(3):
            assert c.read().text == "hello"
        assert c.read_head().status == 101
        assert c.read_exactly(9) == b"hello\nabc"


def test_tunnel_handler_may_send_first(server):
    with server.connect() as c:
        enter(c, "/first")
        assert c.read_exactly(6) == b"hello\n"
        assert c.send(b"x").read_exactly(1) == b"x"


def test_tunnel_handler_may_send_at_any_time(server):
    with server.connect() as c:
        enter(c, "/alarm?5")
        assert c.read_to_end() == b"tick\n" * 5


@half_closes
def test_tunnel_client_may_half_close_first(server):
    with server.connect() as c:
        enter(c, "/both?100")
        assert c.send(b"12345").shut().read_to_end() == b"x" * 100 + b"heard 5\n"
    server.err.wait_for("tunnel: closed, heard 5, said 108, to the end")


@pytest.mark.parametrize("listener", [0, 1], ids=["tcp", "unix"])
def test_tunnel_handler_may_half_close_and_keep_reading(server, listener):
    with server.connect(listener) as c:
        enter(c, "/bye")
        assert c.read_to_end() == b"bye\n"
        for _ in range(10):
            c.send(b"x" * 1000)
        c.shut()
    server.err.wait_for("tunnel: closed, heard 10000, said 4, to the end")


def test_tunnel_unread_input_is_discarded(server):
    """The server discards the client's further input, but the client still receives all data, without a reset."""
    with server.connect() as c:
        enter(c, "/deaf")
        c.send(b"x" * 1000)
        assert c.read_to_end() == b"bye\n"
    server.err.wait_for("tunnel: closed, heard 0, said 4$")


def test_tunnel_abort_resets_connection(server):
    with server.connect() as c:
        enter(c, "/breaks")
        c.send(b"x")
        with pytest.raises(ConnectionResetError):
            c.read_to_end()


@pytest.mark.parametrize("how", ["end", "reset"])
@pytest.mark.parametrize("target", ["/echo", "/both?1000000000", "/alarm?1000"])
def test_tunnel_ends_with_client_disconnect(server, target, how):
    with server.connect() as c:
        enter(c, target)
        c.send(b"x")
        if how == "reset":
            c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
    server.err.wait_for("tunnel: closed")


@half_closes
def test_tunnel_has_one_log_record(server, tmp_path):
    with server.connect() as c:
        enter(c, "/both?1000", fields=WISH)
        c.send(b"abc").shut().read_to_end()
    (line,) = records(tmp_path, 1)
    assert '"GET /both?1000 HTTP/1.1" 101 1008 ' in line + " ", line


def test_tunnel_that_is_aborted_has_a_log_record(server, tmp_path):
    with server.connect() as c:
        enter(c, "/breaks")
        c.send(b"x")
        with pytest.raises(ConnectionResetError):
            c.read_to_end()
    (line,) = records(tmp_path, 1)
    assert '"GET /breaks HTTP/1.1" 101 ' in line, line


@half_closes
def test_tunnel_runs_hooks_and_bypasses_filters(start):
    server = start(plugins=["tunnels", "tunnel_socket", "body_sources", "probe"], sections="[PROBE]\n    Name a\n" + ROUTES)
    with server.connect() as c:
        assert enter(c, "/first", [*WISH, ("Accept-Encoding", "gzip")])["X-Probe"] == "a"
        assert c.read_exactly(6) == b"hello\n"
        c.shut().expect_end()
    server.err.wait_for(r"probe a: done /first 101 ok 6 ")


# ---- Floods ----


def flood(c, stop):
    try:
        while not stop.is_set():
            c.sock.send(b"y" * 65536)
    except OSError:
        pass


def cut(c):
    """Disconnects in both directions, even in the middle of a message."""
    getattr(c.sock, "raw", c.sock).shutdown(socket.SHUT_RDWR)


def worker_of(server):
    return server.workers[0]


@half_closes
def test_tunnel_directions_are_independent(server):
    """The client writes without reading, to a handler that writes as fast as it can."""
    with server.connect() as c:
        enter(c, "/both?50000000")
        for _ in range(300):
            c.send(b"y" * 100000)  # would block forever if the two directions depended on each other
        c.shut()
        data = c.read_to_end()
    assert len(data) == 50000000 + len(b"heard 30000000\n") and data.endswith(b"xheard 30000000\n")


@pytest.mark.parametrize("target", ["/echo", "/both?1000000000", "/idle"])
def test_tunnel_memory_is_bounded(start, target):
    """Memory stays bounded if a peer does not read: backpressure slows down the side that sends."""
    server = start(environment={"ASAN_OPTIONS": ENVIRONMENT["ASAN_OPTIONS"] + ":quarantine_size_mb=1"})
    stop, clients, threads = threading.Event(), [], []
    with server.connect() as c:
        enter(c, target)
    before = memory_kb(worker_of(server))
    for _ in range(8):
        c = server.connect(receive_buffer=4096)
        enter(c, target)
        clients.append(c)
        threads.append(threading.Thread(target=flood, args=[c, stop]))
        threads[-1].start()
    time.sleep(1)  # there is no event to wait for: memory must not grow
    after = memory_kb(worker_of(server))
    stop.set()
    for c in clients:
        cut(c)
    for thread in threads:
        thread.join()
    for c in clients:
        getattr(c.sock, "raw", c.sock).close()
    assert after - before < 20000, "buffers beyond the flow control limit"
    server.err.wait_for("tunnel: closed", count=9) if target != "/idle" else None
    assert server.get("/").status == 200


def test_tunnel_flood_does_not_starve_others(server):
    stop = threading.Event()
    with server.connect() as c:
        enter(c, "/both?4000000000")
        threads = [threading.Thread(target=flood, args=[c, stop]), threading.Thread(target=read_and_discard, args=[c, stop])]
        for thread in threads:
            thread.start()
        for _ in range(50):
            assert server.get("/").text == "hello"
        stop.set()
        cut(c)
        for thread in threads:
            thread.join()


def read_and_discard(c, stop):
    try:
        while not stop.is_set() and c.sock.recv(1 << 20):
            pass
    except OSError:
        pass


# ---- Timeouts ----


def test_tunnel_is_exempt_from_handler_timeout_and_min_rate(server):
    """The pause is longer than HandlerTimeout and longer than two MinRateIntervals."""
    with server.connect() as c:
        enter(c, "/echo")
        time.sleep(2.5)
        assert c.send(b"x").read_exactly(1) == b"x"


@pytest.mark.parametrize("target", ["/echo", "/idle", "/bye"])
def test_tunnel_timeout_closes_idle_tunnel(start, tmp_path, target):
    server = start("TunnelTimeout 600ms")
    with server.connect() as c:
        began = time.monotonic()
        enter(c, target)
        c.read_to_end() if target != "/bye" else server.err.wait_for("tunnel: closed")
        assert time.monotonic() - began >= 0.6, "too early"
    assert " 101 " in records(tmp_path, 1)[0]


def test_tunnel_timeout_may_differ_by_location(start):
    below = "[LOCATION]\n    Path /idle\n    TunnelTimeout 600ms\n"
    server = start("TunnelTimeout unlimited", sections=below + ROUTES)
    with server.connect() as c, server.connect() as stays:
        enter(stays, "/echo")
        began = time.monotonic()
        enter(c, "/idle")
        c.read_to_end()
        assert time.monotonic() - began >= 0.6, "too early"
        assert stays.send(b"x").read_exactly(1) == b"x"


def test_tunnel_timeout_restarts_with_each_byte(start):
    server = start("TunnelTimeout 1s")
    with server.connect() as c, server.connect() as hears:
        enter(c, "/echo")
        enter(hears, "/alarm?40")
        for _ in range(5):
            time.sleep(0.4)
            assert c.send(b"x").read_exactly(1) == b"x"
        assert hears.read_to_end() == b"tick\n" * 40


def test_tunnel_timeout_closes_client_that_does_not_read(start):
    server = start("TunnelTimeout 600ms")
    with server.connect(receive_buffer=4096) as c:
        enter(c, "/both?1000000000")
        server.err.wait_for("tunnel: closed")


def test_tunnel_timeout_spares_slow_reader(start):
    server = start("TunnelTimeout 1s")
    with server.connect(receive_buffer=4096) as c:
        enter(c, "/both?1000000000")
        began = time.monotonic()
        while time.monotonic() - began < 3:
            assert c.sock.recv(16384)
            time.sleep(0.02)
        assert "tunnel: closed" not in server.err.text
    server.err.wait_for("tunnel: closed")


@pytest.mark.parametrize("value", ["0", "10ms", "x"])
def test_tunnel_timeout_invalid_value_is_rejected(run, tmp_path, value):
    path = tmp_path / "bad.conf"
    path.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n    TunnelTimeout {value}\n")
    done = run("-t", "-c", path)
    assert done.code == 3 and "TunnelTimeout" in done.err


# ---- Reloads ----


@half_closes
def test_tunnel_survives_reload(server):
    with server.connect() as c:
        enter(c, "/echo")
        server.tell(signal.SIGHUP)
        server.err.wait_for("the new configuration serves")
        assert server.get("/").status == 200
        assert c.send(b"still here").read_exactly(10) == b"still here"
        c.shut().expect_end()
    wait_until(lambda: len(server.workers) == 1, "the old worker ends with its tunnel")


def test_tunnel_is_closed_by_drain_timeout(start, tmp_path):
    server = start("DrainTimeout 500ms")
    with server.connect() as c:
        enter(c, "/echo")
        server.tell(signal.SIGHUP)
        if not hasattr(c, "streams"):
            c.expect_end()
        else:
            with pytest.raises(Closed):
                c.read_exactly(1)
    assert " 101 " in records(tmp_path, 1)[0]


def test_tunnel_delays_quit(server):
    with server.connect() as c:
        enter(c, "/echo")
        server.tell(signal.SIGQUIT)
        wait_until(lambda: refuses(server), "new clients are refused")
        assert c.send(b"x").read_exactly(1) == b"x"
    server.wait()


def refuses(server):
    try:
        server.connect().close()
        return False
    except OSError:
        return True


# ---- WebSocket ----


def dial(server, **how):
    context = None
    if server.url.startswith("https"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return websocket(server.url.replace("http", "ws", 1) + "/websocket", ssl=context, compression=None, proxy=None, **how)


def test_websocket_works_with_websockets_package(server):
    with dial(server) as ws:
        for message in ("hello", "", "ä" * 1000, bytes(range(256)) * 60):
            ws.send(message)
            assert ws.recv() == message
        ws.ping().wait(10)
        ws.send(["in ", "three ", "pieces"])
        assert ws.recv() == "in three pieces"
        ws.close(1000, "enough")
        assert (ws.close_code, ws.close_reason) == (1000, "enough")


def test_websocket_echoes_many_messages(server):
    with dial(server) as ws:
        messages = [os.urandom(n % 5000) for n in range(0, 100000, 97)]
        thread = threading.Thread(target=lambda: [ws.send(m) for m in messages])
        thread.start()
        assert [ws.recv() for _ in messages] == messages
        thread.join()


def test_websocket_subprotocol_is_negotiated(server):
    with dial(server, subprotocols=["chat", "other"]) as ws:
        assert ws.subprotocol == "chat"


def test_websocket_message_beyond_limit_closes_connection(server):
    with dial(server) as ws:
        with pytest.raises((ConnectionClosed, OSError)):
            ws.send("x" * 100000)
            ws.recv()


@pytest.mark.skipif(not browser.FOUND or DEFAULT != "h1", reason="needs Chromium, which trusts no authority here")
def test_websocket_works_in_browser(server, tmp_path):
    with browser.Browser(tmp_path) as page:
        page.goto(server.url + "/")
        result = page.run("""new Promise((resolve, reject) => {
            const messages = [], ws = new WebSocket(location.href.replace("http", "ws") + "websocket", "chat");
            ws.onopen = () => ws.send("hello");
            ws.onmessage = m => { messages.push(m.data); messages.length < 3 ? ws.send("again " + messages.length) : ws.close(3000, "x"); };
            ws.onerror = reject;
            ws.onclose = e => resolve([...messages, e.code, e.wasClean, ws.protocol].join());
        })""")
        assert result == "hello,again 1,again 2,3000,true,chat"
        assert not [line for line in page.console if "favicon" not in line]


def test_websocket_accept_is_correct_for_random_keys(server):
    for _ in range(20):
        key = base64.b64encode(os.urandom(16)).decode()
        with server.connect() as c:
            reply = enter(c, "/websocket", [*HANDSHAKE[:3], ("Sec-WebSocket-Key", key)])
        sha1 = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        assert reply["Sec-WebSocket-Accept"] == base64.b64encode(sha1).decode()
