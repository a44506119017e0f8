# SPDX-License-Identifier: Apache-2.0
"""The reverse proxy in front of Node.js, gunicorn, uvicorn and websockets: clients of every protocol, and WebSockets over
HTTP/1.1 and over HTTP/2 (extended CONNECT).
"""
import json
import os

import pytest
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN, Protocol, Side
from websockets.sync.client import connect as websocket

import browser
from client import Closed
from monkey import PROTOCOLS
from real_backends import NODE, RealBackends

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
node = pytest.mark.skipif(not NODE, reason="there is no Node.js")


class Routes:
    def __init__(self, backends):
        self.backends = backends

    def prepare(self, monkey, site):
        """One server for all tests of a protocol."""
        site.add("index.html", "<!doctype html><title>home</title>")
        routes = "".join(f"    /{name}/* proxy http://{at} read_timeout=off\n" for name, at in self.backends.addresses.items())
        monkey(plugins=["proxy"], server="MaxBodySize 2M", sections=f"[ROUTES]\n{routes}    /* static\n")


@pytest.fixture(scope="module")
def routes(tmp_path_factory):
    with RealBackends(tmp_path_factory.mktemp("parts")) as backends:
        yield Routes(backends)


@pytest.fixture
def server(routes, lasting):
    return lasting(routes.prepare)


CONTENT = os.urandom(700_000)


# ---- Node.js ----

@node
@every_protocol
def test_node_responds_over_kept_connection(server):
    before = json.loads(server.get("/node/seen").text)["connections"]
    with server.connect() as c:
        for _ in range(5):
            seen = json.loads(c.get("/node/seen?x=%20").text)
    assert seen["url"] == "/node/seen?x=%20" and seen["fields"]["x-forwarded-for"] == "127.0.0.1"
    assert seen["fields"]["x-forwarded-proto"] == ("https" if server.encrypts[0] else "http")
    assert seen["connections"] == before, "the connection is reused"


@node
@every_protocol
def test_node_echoes_uploads(server):
    reply = server.get("/node/echo", "POST", body=CONTENT)
    assert reply.body == CONTENT and reply["X-Length"] == str(len(CONTENT))
    with server.connect() as c:
        c.ask("/node/echo", "PUT", streamed=True)
        for at in range(0, len(CONTENT), 50_000):
            c.more(CONTENT[at:at + 50_000])
        reply = c.done().read()
    assert reply.body == CONTENT and reply["X-Length"] == str(len(CONTENT))  # the proxy spooled the body, so its length is known


@node
@every_protocol
def test_node_sends_chunks_and_trailers(server):
    reply = server.get("/node/chunked", fields=[("TE", "trailers")])
    assert reply.text == "".join(f"line {i}\n" for i in range(100))
    assert ("x-sum", "4950") in [(name.lower(), value) for name, value in reply.trailers]


@node
@every_protocol
def test_node_sends_early_hints(server):
    reply = server.get("/node/hints")
    assert reply.text == "hinted"
    assert [(each.status, each["Link"]) for each in reply.interim] == [(103, "</a.css>; rel=preload; as=style")]


@node
@every_protocol
def test_node_events_arrive_at_once_and_end_with_client(server):
    with server.connect() as c, server.connect() as other:
        c.ask("/node/events")
        assert c.read_head()["Content-Type"] == "text/event-stream"
        got = first_of(c, server.is_h2)
        assert got.startswith(b": hello\n\n")
        for i in range(3):
            assert int(other.get(f"/node/tell?{i}").text) == 1
            assert first_of(c, server.is_h2) == b"data: %d\n\n" % i
    while int(server.get("/node/tell?").text):  # the backend detects the disconnect when the proxy does
        pass


def first_of(c, is_h2):
    """Returns the data of the next chunk."""
    if is_h2:
        return c.read_some()
    data = c.read_exactly(int(c.read_until(b"\r\n"), 16))
    c.read_exactly(2)
    return data


@node
def test_node_cookies_and_redirects_are_passed(server):
    reply = server.get("/node/cookies")
    assert reply.status == 302 and reply["Location"] == "/node/seen" and reply.all("Set-Cookie") == ["a=1", "b=2"]


@node
@every_protocol
def test_node_truncated_response_is_detected(server):
    try:
        assert server.get("/node/die").status == 502
    except Closed:
        pass
    assert server.get("/node/seen").status == 200


# ---- gunicorn and uvicorn ----

@every_protocol
def test_gunicorn_gets_request_and_body(server):
    seen = json.loads(server.get("/wsgi/a%20b?x=1", fields=[("X-Own", "2")]).text)["environ"]
    assert (seen["PATH_INFO"], seen["QUERY_STRING"], seen["HTTP_X_OWN"]) == ("/wsgi/a b", "x=1", "2")
    assert seen["wsgi.url_scheme"] == ("https" if server.encrypts[0] else "http")
    assert server.get("/wsgi/echo", "POST", body=CONTENT).body == CONTENT
    assert server.get("/wsgi/stream").body == b"".join(b"%d\n" % i * 1000 for i in range(100))
    head = server.get("/wsgi/x", "HEAD")
    assert head.status == 200 and head.body == b"" and int(head["Content-Length"]) > 100
    with server.connect() as c:
        c.ask("/wsgi/echo", "POST", streamed=True)
        assert c.more(b"in ").more(b"pieces").done().read().text == "in pieces"


@every_protocol
def test_uvicorn_gets_request_and_body(server):
    seen = json.loads(server.get("/asgi/%C3%A4?q").text)
    assert (seen["path"], seen["query"], seen["client"][0]) == ("/asgi/ä", "q", "127.0.0.1")
    assert seen["scheme"] == ("https" if server.encrypts[0] else "http")
    assert server.get("/asgi/echo", "POST", body=CONTENT).body == CONTENT


# ---- WebSockets ----

def dial(server, path, **how):
    """Opens a WebSocket over HTTP/1.1."""
    tls = {"ssl": server.encryption.context("http/1.1")} if server.encrypts[0] else {}
    if tls:
        how["server_hostname"] = "localhost"
    return websocket(server.url.replace("http", "ws", 1) + path, proxy=None, **tls, **how)


class Stream:
    """Opens a WebSocket on an HTTP/2 stream."""

    def __init__(self, client, path, fields=()):
        self.client = client
        client.wait(lambda: client.settings_received)
        client.ask(path, "CONNECT", [("sec-websocket-version", "13"), *fields], streamed=True, protocol="websocket")
        self.stream, self.head = client.stream, client.read_head()
        self.protocol, self.frames = Protocol(Side.CLIENT, state=OPEN), []

    def send(self, text):
        self.protocol.send_text(text.encode())
        self._flush()

    def _flush(self):
        for data in self.protocol.data_to_send():
            if data:
                self.client.more(data, self.stream)

    def receive(self):
        """Returns the next message or close frame."""
        while not self.frames:
            self.client.current = self.stream
            self.protocol.receive_data(self.client.read_some())
            self.frames += [each for each in self.protocol.events_received() if isinstance(each, Frame)]
        return self.frames.pop(0)

    def read(self):
        frame = self.receive()
        assert frame.opcode == Opcode.TEXT
        return frame.data.decode()

    def close(self):
        self.protocol.send_close(1000, "enough")
        self._flush()
        frame = self.receive()
        self.client.done(stream=self.stream)
        self.client.current = self.stream
        assert self.client.read_rest() == b""
        return frame


@pytest.mark.parametrize("protocol", ["h1", "h1-tls"], indirect=True)
def test_websocket_passes_messages_and_close(server):
    with dial(server, "/ws/x") as ws:
        assert ws.protocol.extensions, "negotiated through the proxy"
        for message in ("hello", "", "ä" * 100_000, bytes(range(256)) * 300):
            ws.send(message)
            assert [ws.recv(), ws.recv()] == [message, str(len(message))]
        assert ws.ping().wait(10)
        ws.close(1000, "enough")
        assert (ws.close_code, ws.close_reason) == (1000, "enough")


@pytest.mark.parametrize("protocol", ["h1", "h1-tls"], indirect=True)
def test_websocket_works_with_uvicorn_and_node(server):
    with dial(server, "/asgi/x", subprotocols=["chat", "other"]) as ws:
        ws.send("hello")
        assert (ws.recv(), ws.subprotocol) == ("HELLO", "chat")
    with pytest.raises(InvalidStatus) as refused:
        dial(server, "/asgi/refused")
    assert refused.value.response.status_code == 403
    if NODE:
        with dial(server, "/node/x", compression=None) as ws:
            ws.send("hello")
            assert ws.recv() == "HELLO"


@pytest.mark.parametrize("protocol", ["h2", "h2-tls"], indirect=True)
def test_websocket_works_over_http2(server):
    """The client uses extended CONNECT (RFC 8441), and the backend uses HTTP/1.1."""
    with server.connect() as c:
        ws, other = Stream(c, "/ws/x"), Stream(c, "/asgi/x", [("sec-websocket-protocol", "chat")])
        assert ws.head.status == other.head.status == 200 and other.head["sec-websocket-protocol"] == "chat"
        assert "sec-websocket-accept" not in ws.head and "upgrade" not in ws.head
        for text in ("hello", "x" * 60_000):
            ws.send(text)
            other.send(text)
            assert [ws.read(), ws.read()] == [text, str(len(text))]
            assert other.read() == text.upper()
        assert c.get("/wsgi/x").status == 200, "other streams continue beside them"
        assert ws.close().opcode == Opcode.CLOSE and other.close().opcode == Opcode.CLOSE
        assert Stream(c, "/asgi/refused").head.status == 403
        assert Stream(c, "/node/x").head.status == 200 or not NODE


@pytest.mark.skipif(not browser.FOUND, reason="no chromium here")
@pytest.mark.parametrize("protocol", ["h1", "h2-tls"], indirect=True)
def test_websocket_works_in_browser(server, tmp_path):
    """Over TLS, the browser uses extended CONNECT on its existing connection."""
    flags = [f"--ignore-certificate-errors-spki-list={server.encryption.key_hash}"] if server.encrypts[0] else []
    with browser.Browser(tmp_path, *flags) as page:
        page.goto(server.url + "/")
        result = page.run("""new Promise((resolve, reject) => {
            const messages = [], ws = new WebSocket(location.href.replace("http", "ws") + "ws/x");
            ws.onopen = () => ws.send("hello");
            ws.onmessage = m => { messages.push(m.data); if (messages.length == 2) ws.close(3000, "x"); };
            ws.onerror = reject;
            ws.onclose = e => resolve([...messages, e.code, e.wasClean, ws.extensions].join());
        })""")
        assert result.startswith("hello,5,3000,true,permessage-deflate")
        assert not [line for line in page.console if "favicon" not in line]
