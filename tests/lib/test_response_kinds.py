# SPDX-License-Identifier: Apache-2.0
"""Every kind of response that an embedded handler can send, over each protocol, with and without TLS (response_kinds.c)."""
import functools

import pytest

from monkey import PROGRAM, PROTOCOLS, Server
from proc import wait_until
from wsframes import CLOSE, FIN, TEXT, Peer, closing, frame

HELPER = PROGRAM.parent / "response_kinds"
TLS = PROGRAM.parent / "plugins/monkey-tls.so"
HAS_HTTP2 = "HTTP/2" in (PROGRAM.parent / "features.txt").read_text().partition(";")[0] if TLS.exists() else False
FILE = b"".join(b"line %d of a file\n" % i for i in range(40_000))
MB = 1 << 20

pytestmark = pytest.mark.skipif(not HELPER.exists() or not HAS_HTTP2,
                                reason="needs tests/lib/response_kinds.c, TLS and HTTP/2")


@pytest.fixture(scope="module")
def program(tmp_path_factory, encryption):
    folder = tmp_path_factory.mktemp("response_kinds")
    (folder / "file").write_bytes(FILE)
    server = Server(folder, [encryption.certificate, encryption.key, "file"], program=HELPER, encryption=encryption)
    yield server
    server.stop()


@pytest.fixture(params=PROTOCOLS)
def connect(program, request):
    """Connects a client that uses the given protocol."""
    name = request.param
    return functools.partial(program.connect, 1 if name.endswith("-tls") else 0, name.removesuffix("-tls"))


def test_handler_responds_immediately(connect):
    with connect() as c:
        for number in (7, 123456789):
            answer = c.get(f"/users/{number}")
            assert answer.text in (f"version 11, user {number}\n", f"version 20, user {number}\n")
            assert answer.text.startswith("version 20") == hasattr(c, "streams")
        assert c.get("/users/x").status == 404
        assert c.get("/users/1", "PUT", body=b"x").status == 405


def test_handler_responds_later_from_another_thread(connect):
    with connect() as c:
        for _ in range(3):
            assert c.get("/later").text == "from another thread\n"


def source_counters(program):
    return [int(word) for word in program.get("/pulled").text.split()]


def test_body_source_is_read_as_the_client_reads(program, connect):
    size = 96 * MB
    before, closed = source_counters(program)
    with connect(receive_buffer=65536) as c:
        c.ask(f"/source/{size}")
        assert c.read_head().status == 200
        seen = []
        wait_until(lambda: seen.append(source_counters(program)[0]) or len(seen) > 20 and len(set(seen[-20:])) == 1,
                   "the source is throttled by the client")
        assert 0 < seen[-1] - before < size / 2
    wait_until(lambda: source_counters(program)[1] == closed + 1, "the source is closed")


def test_body_source_is_read_to_its_end(connect):
    with connect() as c:
        assert c.get("/source/1000003").body == b"0123456789" * 100_000 + b"012"
        assert c.get("/source/0").body == b""


@pytest.mark.parametrize("how, method, expected", [
    ("200", "GET", (200, b"x" * MB)), ("200", "HEAD", (200, b"")), ("304", "GET", (304, b"")), ("204", "GET", (204, b"")),
    ("replaced", "GET", (200, b"another body\n"))])
def test_owned_body_is_freed_once(program, connect, how, method, expected):
    freed = int(program.get("/freed").text)
    with connect() as c:
        answer = c.get(f"/owned/{MB}/{how}", method)
        assert (answer.status, answer.body) == expected
    wait_until(lambda: int(program.get("/freed").text) == freed + 1, "the body is freed")


def test_owned_body_is_freed_once_if_an_error_page_replaces_it(program, connect):
    freed = int(program.get("/freed").text)
    with connect() as c:
        answer = c.get("/owned/1000/failed")
        assert answer.status == 503 and b"xxx" not in answer.body
    wait_until(lambda: int(program.get("/freed").text) == freed + 1, "the body is freed")


def test_owned_body_is_freed_once_if_the_client_leaves(program, connect):
    freed = int(program.get("/freed").text)
    with connect(receive_buffer=65536) as c:
        c.ask(f"/owned/{64 * MB}/200")
        assert c.read_head().status == 200
        assert int(program.get("/freed").text) == freed
        if hasattr(c, "cancel"):  # an HTTP/2 stream is reset, and the connection stays open
            c.cancel()
            wait_until(lambda: int(program.get("/freed").text) == freed + 1, "the body is freed")
    wait_until(lambda: int(program.get("/freed").text) == freed + 1, "the body is freed")


def test_file_is_served(connect):
    with connect() as c:
        assert c.get("/file").body == FILE
        assert c.get("/file", "HEAD").status == 200


def test_request_body_is_read_as_it_arrives(connect):
    data = bytes(range(256)) * 2000
    with connect() as c:
        assert c.get("/sum", "POST", body=data).text == f"{len(data)} {sum(data)}"
        c.ask("/sum", "POST", streamed=True)
        for at in range(0, len(data), 50_000):
            c.more(data[at:at + 50_000])
        c.done()
        assert c.read("POST").text == f"{len(data)} {sum(data)}"


def test_websocket_echoes_message(program, connect):
    name, protocol = connect.args
    with Peer(program, "/echo", listener=name, protocol=protocol) as p:
        p.send(frame(FIN | TEXT, b"hello"))
        p.expect("hello")
        p.send(closing(1000))


def test_event_stream_sends_events(connect):
    with connect() as c:
        answer = c.get("/events")
        assert (answer.status, answer["Content-Type"]) == (200, "text/event-stream")
        assert answer.body == b"data: one\n\nevent: more\ndata: two\n\n"
