# SPDX-License-Identifier: Apache-2.0
"""The HTTP/2 test client itself: it must detect every protocol violation of a server."""
import socket
import ssl
import threading

import h2.config
import h2.connection
import h2.events
import pytest

import h2frames as f
from client import BadReply, Client, Closed
from http2 import Http2Client
from sockets import Truncated

DATE, SERVER = ("date", "Mon, 01 Jan 2024 00:00:00 GMT"), ("server", "Monkey")
HELLO = f.settings() + f.settings(ack=True)


def head(*fields, status="200", end=False, stream=1, more=False):
    return f.headers(stream, f.block_of([(":status", status), DATE, SERVER, *fields]), end, more)


def length(n):
    return ("content-length", str(n))


@pytest.fixture
def serve():
    """Connects a client to `talk(connection)`, which acts as the server."""
    listener = socket.create_server(("127.0.0.1", 0))
    clients, threads = [], []

    def start(act, wrap=lambda s: s, make=Http2Client, **how):
        def run():
            connection, _ = listener.accept()
            # The server sends without reading, and so does its client: the socket buffer must hold everything that the windows
            # allow.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
            try:
                with wrap(connection) as peer:
                    act(peer)
            except OSError:
                pass

        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()
        clients.append(make(listener.getsockname(), **how))
        return clients[-1]

    yield start
    for client in clients:
        client.close()
    for thread in threads:
        thread.join(10)
    listener.close()


@pytest.fixture
def play(serve):
    """Connects a client to a server that sends only these bytes."""
    def start(data, **how):
        def act(connection):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass

        return serve(act, **how)

    return start


def test_h2_client_reads_responses_in_request_order(play):
    c = play(HELLO + head(length(3), stream=5) + f.data(5, b"thr", end=True) + head(stream=1) + head(length(3), stream=3) +
             f.data(3, b"tw") + f.data(1, b"one") + f.data(3, b"o", end=True) + f.data(1, b"!", end=True, padding=7))
    c.ask("/1").ask("/2").ask("/3")
    assert [(r.body, r.framing) for r in (c.read(), c.read(), c.read())] == [
        (b"one!", "frames"), (b"two", "length"), (b"thr", "length")]
    assert c.end_of_connection() is None


def test_h2_client_reads_interim_responses_and_trailers(play):
    c = play(HELLO + f.headers(1, f.block_of([(":status", "103"), ("link", "<a>")]), end=False) + head() + f.data(1, b"x") +
             f.headers(1, f.block_of([("x-sum", "1")])))
    reply = c.get("/")
    assert [r.status for r in reply.interim] == [103] and reply.trailers == [("x-sum", "1")] and reply.body == b"x"


def test_h2_client_reads_head_in_continuation_frames(play):
    block = f.block_of([(":status", "200"), DATE, SERVER, ("x-long", "y" * 3000)])
    assert play(HELLO + f.header_block(1, block, size=100)).get("/")["X-Long"] == "y" * 3000


def test_h2_client_reports_codes_of_rst_stream_and_goaway(play):
    c = play(HELLO + f.rst_stream(1, "REFUSED_STREAM") + f.goaway(3, "ENHANCE_YOUR_CALM", b"slowly"))
    c.ask("/1").ask("/2").ask("/3")
    with pytest.raises(Closed) as refused:
        c.read()
    with pytest.raises(Closed) as ended:
        c.read()
    with pytest.raises(Closed) as ignored:
        c.read()
    assert (refused.value.code, refused.value.again) == ("REFUSED_STREAM", True)
    assert (ended.value.code, ended.value.again) == ("ENHANCE_YOUR_CALM", False)
    assert (ignored.value.code, ignored.value.again) == ("ENHANCE_YOUR_CALM", True)


WRONG = {
    "no settings first": f.ping() + HELLO,
    "an acknowledgement first": f.settings(ack=True) + f.settings() + head(end=True),
    "settings of five bytes": f.frame(f.SETTINGS, 0, 0, b"12345"),
    "settings on a stream": f.frame(f.SETTINGS, 0, 1),
    "a server that allows push": f.settings({f.ENABLE_PUSH: 1}),
    "a window without end": f.settings({f.INITIAL_WINDOW: 1 << 31}),
    "small frames": f.settings({f.FRAME_SIZE: 16383}),
    "an acknowledgement too many": HELLO + f.settings(ack=True),
    "a frame that is too long": HELLO + f.data(1, b"x" * 16385),
    "a frame of no known type": HELLO + f.frame(0x20),
    "flags that mean nothing": HELLO + f.frame(f.HEADERS, 0x2 | f.END_HEADERS | f.END_STREAM, 1),
    "the reserved bit": HELLO + f.frame(f.DATA, 0, 1 << 31 | 1),
    "a stream that was never opened": HELLO + head(stream=3, end=True),
    "a stream of the server's": HELLO + head(stream=2, end=True),
    "a stream where the connection is meant": HELLO + f.frame(f.PING, 0, 1, b"12345678"),
    "the connection where a stream is meant": HELLO + f.headers(0, b""),
    "no status": HELLO + f.headers(1, f.block_of([DATE, SERVER])),
    "a status behind a field": HELLO + f.headers(1, f.block_of([DATE, SERVER, (":status", "200")])),
    "two statuses": HELLO + head((":status", "200"), end=True),
    "a status of four digits": HELLO + head(status="2000", end=True),
    "101": HELLO + f.headers(1, f.block_of([(":status", "101")]), end=False),
    "a pseudo field of requests": HELLO + f.headers(1, f.block_of([(":status", "200"), (":path", "/"), DATE, SERVER])),
    "a name in upper case": HELLO + head(("X-Y", "z"), end=True),
    "a name that is none": HELLO + head(("x y", "z"), end=True),
    "an empty name": HELLO + head(("", "z"), end=True),
    "a line break in a value": HELLO + head(("x", "a\nb"), end=True),
    "a blank before a value": HELLO + head(("x", " a"), end=True),
    "connection": HELLO + head(("connection", "keep-alive"), end=True),
    "keep-alive": HELLO + head(("keep-alive", "timeout=5"), end=True),
    "transfer-encoding": HELLO + head(("transfer-encoding", "chunked"), end=True),
    "no date": HELLO + f.headers(1, f.block_of([(":status", "200"), SERVER])),
    "HPACK of no table": HELLO + f.headers(1, b"\xff\xff\x03"),
    "HPACK that is cut": HELLO + f.headers(1, f.block_of([(":status", "200")])[:-1]),
    "HPACK with a larger table": HELLO + f.headers(1, f.integer(8192, 5, 0x20) + f.block_of([(":status", "200")])),
    "a frame within a head": HELLO + head(more=True) + f.ping() + f.continuation(1),
    "a head that is continued on another stream": HELLO + head(more=True) + f.continuation(3),
    "a continuation of nothing": HELLO + head() + f.continuation(1),
    "an empty continuation": HELLO + head(more=True, end=True) + f.continuation(1),
    "padding beyond the frame": HELLO + head() + f.frame(f.DATA, f.PADDED | f.END_STREAM, 1, b"\x03ab"),
    "padding of something": HELLO + head() + f.frame(f.DATA, f.PADDED | f.END_STREAM, 1, b"\x02aaa"),
    "content before the head": HELLO + f.data(1, b"x", end=True),
    "content behind an interim head": HELLO + f.headers(1, f.block_of([(":status", "100")]), end=False) + f.data(1, b"x", True),
    "an interim head that ends": HELLO + f.headers(1, f.block_of([(":status", "100")])),
    "less than was told": HELLO + head(length(3)) + f.data(1, b"ab", end=True),
    "more than was told": HELLO + head(length(1)) + f.data(1, b"ab", end=True),
    "nothing of what was told": HELLO + head(length(1), end=True),
    "a length with 204": HELLO + head(length(0), status="204", end=True),
    "content with 304": HELLO + head(status="304") + f.data(1, b"x", end=True),
    "content after the end": HELLO + head() + f.data(1, b"x", end=True) + f.data(1, b"y", end=True) + f.ping(),
    "a head after the end": HELLO + head(end=True) + head(end=True),
    "trailers that do not end": HELLO + head() + f.headers(1, f.block_of([("x", "y")]), end=False),
    "trailers with a status": HELLO + head() + f.headers(1, f.block_of([(":status", "200")])),
    "trailers of nothing": HELLO + head() + f.headers(1, b""),
    "empty frames": HELLO + head() + f.data(1) + f.data(1, end=True),
    "a reset after the end": HELLO + head(end=True) + f.rst_stream(1),
    "a reset after a reset": HELLO + head() + f.rst_stream(1) + f.rst_stream(1),
    "content after a reset": HELLO + head() + f.rst_stream(1) + f.data(1, b"x"),
    "a reset that means nothing": HELLO + head() + f.rst_stream(1, "NO_ERROR"),
    "a window that does not grow": HELLO + f.window_update(0, 0),
    "a window that overflows": HELLO + f.window_update(0, f.WINDOW_MAX),
    "window for a stream that has ended": HELLO + f.window_update(1, 10),
    "a promise": HELLO + f.frame(f.PUSH_PROMISE, f.END_HEADERS, 1, b"\0\0\0\2" + f.block_of(f.request())),
    "a priority": HELLO + f.priority(1),
    "an echo of no ping": HELLO + f.ping(ack=True),
    "a short ping": HELLO + f.frame(f.PING, 0, 0, b"1234"),
    "a goaway of seven bytes": HELLO + f.frame(f.GOAWAY, 0, 0, b"1234567"),
    "a goaway of more and more": HELLO + f.goaway(1) + f.goaway(3),
    "a goaway of the server's streams": HELLO + f.goaway(2),
    "half a frame": HELLO + head(length(1)) + f.data(1, b"x", end=True)[:-1],
}


@pytest.mark.parametrize("name", WRONG)
def test_h2_client_detects_protocol_violations(play, name):
    c = play(WRONG[name]).ask("/")
    with pytest.raises(AssertionError) as error:
        while c.step():
            pass
    assert type(error.value) is not Closed, f"detected as something else: {error.value}"


@pytest.mark.parametrize("data", [HELLO, HELLO + head(), HELLO + head(length(3)) + f.data(1, b"on")])
def test_h2_client_detects_truncated_responses(play, data):
    with pytest.raises(Closed):
        play(data).get("/")


@pytest.mark.parametrize("extra, level", [(1, "stream"), (0, None)])
def test_h2_client_detects_data_beyond_window(play, extra, level):
    """A slow client has the smallest windows: 65,535 bytes both for the stream and for the connection."""
    body = b"".join(f.data(1, b"x" * 13107) for _ in range(5)) + f.data(1, b"y" * extra, end=True)
    c = play(HELLO + head() + body, receive_buffer=65536).ask("/")
    if extra:
        with pytest.raises(BadReply, match="bytes too many"):
            c.wait(lambda: c.stream.ended)
    else:
        c.wait(lambda: c.stream.ended)
        assert len(c.read().body) == 65535


def test_h2_client_enforces_smaller_window_after_ack(play):
    c = play(f.settings() + head() + f.data(1, b"x" * 200) + f.settings(ack=True) + f.data(1, b"y"),
             receive_buffer=65536, settings={f.INITIAL_WINDOW: 100}).ask("/")
    with pytest.raises(BadReply, match="bytes too many"):
        c.read()
    assert c.streams[1].received == 200, "data sent before the acknowledgement is valid"


def answer(connection, size):
    """A correct server that uses the h2 package: sends `size` bytes to every client as fast as the windows allow."""
    peer = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
    peer.initiate_connection()
    left = {}
    while True:
        connection.sendall(peer.data_to_send())
        data = connection.recv(1 << 16)
        if not data:
            return
        for event in peer.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                peer.send_headers(event.stream_id, [(":status", "200"), DATE, SERVER, length(size)])
                left[event.stream_id] = size
            elif isinstance(event, h2.events.DataReceived):
                peer.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        for stream in list(left):
            while left[stream] and (window := min(peer.local_flow_control_window(stream), 16384)):
                left[stream] -= (n := min(window, left[stream]))
                peer.send_data(stream, b"x" * n, end_stream=not left[stream])
            if not left[stream]:
                del left[stream]


@pytest.mark.parametrize("how", [{}, {"receive_buffer": 4096}], ids=["fast", "slow"])
def test_h2_client_understands_python_h2_server(serve, how):
    c = serve(lambda connection: answer(connection, 300_000), **how)
    for _ in range(3):
        c.ask("/", "POST", body=b"y" * 200_000)
    for _ in range(3):
        assert c.read().body == b"x" * 300_000
    c.ask("/")
    assert c.read_head().status == 200 and c.read_exactly(100_000) + c.read_rest() == b"x" * 300_000


# TLS

@pytest.fixture
def wrap(encryption):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(encryption.certificate, encryption.key)
    context.set_alpn_protocols(["h2", "http/1.1"])
    return lambda connection: context.wrap_socket(connection, server_side=True)


def test_tls_socket_works_from_two_threads(serve, wrap, encryption):
    data = b"z" * 3_000_000

    def echo(connection):
        left = len(data)
        while left:
            piece = connection.recv(1 << 16)
            connection.sendall(piece)
            left -= len(piece)
        connection.unwrap()

    c = serve(echo, wrap, Client, tls=encryption.context("http/1.1"))
    sender = threading.Thread(target=c.send, args=(data,))
    sender.start()
    assert c.read_exactly(len(data)) == data
    sender.join()
    c.shut().expect_end()


def test_tls_socket_detects_missing_close_notify(serve, wrap, encryption):
    c = serve(lambda connection: connection.sendall(b"HTTP/1.1 200"), wrap, Client, tls=encryption.context("http/1.1"))
    with pytest.raises(Truncated):
        c.read()


def test_h2_client_detects_wrong_alpn_protocol(serve, wrap, encryption):
    with pytest.raises(BadReply, match="ALPN"):
        serve(lambda connection: None, wrap, tls=encryption.context("http/1.1"))
