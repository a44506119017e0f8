# SPDX-License-Identifier: Apache-2.0
"""gRPC through the proxy, with the client and the server of grpcio: all forms of calls, and errors of each kind."""
import contextlib
import threading
import time
from concurrent import futures

import pytest

from http2_backend import Http2Backend, answer
from proc import wait_until

grpc = pytest.importorskip("grpc")

over_http2 = pytest.mark.parametrize("protocol", ["h2"], indirect=True)

GRPC = [("Content-Type", "application/grpc")]
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def unary(request, context):
    context.send_initial_metadata((("x-begin", context_value(context, "x-in")),))
    context.set_trailing_metadata((("x-end", "last"), ("x-data-bin", b"\x00\xff")))
    return request[::-1]


def context_value(context, name):
    return dict(context.invocation_metadata()).get(name, "absent")


def fail(_, context):
    context.abort(grpc.StatusCode.NOT_FOUND, "no such thing: 100 % \u00e4")


def count(request, _):
    for i in range(int(request)):
        yield b"%d" % i


def add(requests, _):
    return b"%d" % sum(len(each) for each in requests)


def echo(requests, _):
    yield from requests


class Handlers(grpc.GenericRpcHandler):
    def __init__(self):
        self.cancelled = []

    def wait(self, request, context):
        ended = threading.Event()
        context.add_callback(lambda: (self.cancelled.append(not context.is_active()), ended.set()))
        ended.wait(float(request))
        return b"late"

    def service(self, details):
        return {"/t.S/Unary": grpc.unary_unary_rpc_method_handler(unary), "/t.S/Fail": grpc.unary_unary_rpc_method_handler(fail),
                "/t.S/Count": grpc.unary_stream_rpc_method_handler(count), "/t.S/Add": grpc.stream_unary_rpc_method_handler(add),
                "/t.S/Echo": grpc.stream_stream_rpc_method_handler(echo),
                "/t.S/Wait": grpc.unary_unary_rpc_method_handler(self.wait)}.get(details.method)


@pytest.fixture
def backend():
    server = grpc.server(futures.ThreadPoolExecutor(16), options=UNLIMITED)
    server.handlers = Handlers()
    server.add_generic_rpc_handlers((server.handlers,))
    server.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield server
    server.stop(None)


@pytest.fixture
def calls(monkey):
    """`calls(port, ...)` starts the proxy, and returns a function that makes a call: call("Unary", b"x")."""
    channels = contextlib.ExitStack()

    def start(port, options="", keys="", **how):
        server = monkey(plugins=["proxy"], server="MaxBodySize 100M", sections=f"[UPSTREAM]\n    Name group\n"
                        f"    Server 127.0.0.1:{port}\n    {keys}\n[ROUTES]\n    /* proxy h2c://group {options}\n", **how)
        channel = channels.enter_context(grpc.insecure_channel(f"127.0.0.1:{server.port}", options=UNLIMITED))

        def method(name, kind="unary_unary"):
            return getattr(channel, kind)(f"/t.S/{name}")

        method.server = server
        return method

    with channels:
        yield start


def code_of(call, *args, **how):
    with pytest.raises(grpc.RpcError) as caught:
        result = call(*args, timeout=how.pop("timeout", 20), **how)
        list(result)
    return caught.value.code(), caught.value.details()


def test_grpc_unary_call_passes_metadata_and_trailers(backend, calls):
    call = calls(backend.port)
    response, state = call("Unary").with_call(b"hello", timeout=20, metadata=(("x-in", "value"),))
    assert response == b"olleh"
    assert dict(state.initial_metadata())["x-begin"] == "value"
    assert dict(state.trailing_metadata()) == {"x-end": "last", "x-data-bin": b"\x00\xff"}


def test_grpc_status_of_the_backend_passes(backend, calls):
    call = calls(backend.port)
    assert code_of(call("Fail"), b"") == (grpc.StatusCode.NOT_FOUND, "no such thing: 100 % \u00e4")
    assert code_of(call("Missing"), b"")[0] == grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("size", [0, 1, 16_384, 65_536, 5_000_000])
def test_grpc_messages_of_all_sizes_pass(backend, calls, size):
    message = bytes(i % 251 for i in range(size))
    assert calls(backend.port)("Unary")(message, timeout=30) == message[::-1]


def test_grpc_server_streaming(backend, calls):
    call = calls(backend.port)("Count", "unary_stream")
    assert [int(each) for each in call(b"3000", timeout=30)] == list(range(3000))


def test_grpc_client_streaming(backend, calls):
    call = calls(backend.port)("Add", "stream_unary")
    assert call(iter([b"x" * 50_000] * 100), timeout=30) == b"5000000"


def test_grpc_bidirectional_streaming_delivers_each_message_at_once(backend, calls):
    got = threading.Semaphore(0)

    def requests():
        for i in range(5):
            yield b"%d" % i
            assert got.acquire(timeout=20), "the response to a message waits for the next message"

    responses = calls(backend.port)("Echo", "stream_stream")(requests(), timeout=30)
    for i, each in enumerate(responses):
        assert each == b"%d" % i
        got.release()


@pytest.mark.slow
def test_grpc_silent_stream_outlives_the_minimum_rate(backend, calls):
    def requests():
        yield b"a"
        time.sleep(4)
        yield b"b"

    call = calls(backend.port, host="MinRate 1000\nMinRateInterval 1s")("Echo", "stream_stream")
    assert list(call(requests(), timeout=30)) == [b"a", b"b"]


@pytest.mark.slow
def test_grpc_silent_stream_ends_at_read_timeout(backend, calls):
    def requests():
        yield b"a"
        time.sleep(5)

    call = calls(backend.port, "read_timeout=1s")("Echo", "stream_stream")
    assert code_of(call, requests())[0] in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.CANCELLED,
                                            grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNKNOWN)


def test_grpc_cancellation_reaches_the_backend(backend, calls):
    future = calls(backend.port)("Wait").future(b"20", timeout=30)
    time.sleep(0.5)
    future.cancel()
    wait_until(lambda: backend.handlers.cancelled == [True], "the backend notices the cancellation")


def test_grpc_deadline_reaches_the_backend(backend, calls):
    assert code_of(calls(backend.port)("Wait"), b"20", timeout=0.5)[0] == grpc.StatusCode.DEADLINE_EXCEEDED
    wait_until(lambda: backend.handlers.cancelled == [True], "the backend notices the deadline")


def test_grpc_calls_share_a_connection(backend, calls):
    call = calls(backend.port)("Wait")
    waiting = [call.future(b"0.5", timeout=30) for _ in range(16)]
    assert {each.result() for each in waiting} == {b"late"}


# ---- Errors of the proxy ----

def test_grpc_unreachable_backend_is_unavailable(calls):
    assert code_of(calls(1)("Unary"), b"")[0] == grpc.StatusCode.UNAVAILABLE


def test_grpc_response_timeout_is_deadline_exceeded(backend, calls):
    assert code_of(calls(backend.port, "response_timeout=300ms")("Wait"), b"20")[0] == grpc.StatusCode.DEADLINE_EXCEEDED


def test_grpc_full_queue_is_unavailable(backend, calls):
    call = calls(backend.port, keys="MaxConnections 1\n    MaxConnectionsPerAddress 0\n    QueueTimeout 300ms")
    first = call("Wait").future(b"2", timeout=30)
    time.sleep(0.5)
    assert code_of(call("Unary"), b"")[0] == grpc.StatusCode.UNAVAILABLE
    assert first.result() == b"late"


@over_http2
def test_grpc_error_over_http_has_status_200(calls):
    server = calls(1).server
    reply = server.get("/t.S/Unary", "POST", [("Content-Type", "application/grpc+proto")], b"x")
    assert (reply.status, reply.get("grpc-status"), reply.get("Content-Type")) == (200, "14", "application/grpc")
    assert server.get("/t.S/Unary", "POST", [("Content-Type", "application/grpc-web")], b"x").status == 502


@over_http2
def test_grpc_call_gets_a_status_in_place_of_an_intercepted_error(calls):
    with Http2Backend(lambda _: answer("<html>page of the backend</html>", 503, fields=[("content-type", "text/html")])) as backend:
        server = calls(backend.address.rpartition(":")[2], "intercept_errors=on").server
        reply = server.get("/t.S/Unary", "POST", GRPC, b"x")
        assert (reply.status, reply.get("grpc-status"), reply.get("Content-Type"), reply.body) == (200, "14", "application/grpc", b"")
        assert code_of(calls(backend.address.rpartition(":")[2], "intercept_errors=on")("Unary"), b"")[0] == grpc.StatusCode.UNAVAILABLE
        reply = server.get("/t.S/Unary", "POST", body=b"x")
        assert reply.status == 503 and "page of the backend" not in reply.text and "grpc-status" not in reply


@pytest.mark.parametrize("protocol, method", [("h1", "POST"), ("h2", "PUT")], indirect=["protocol"])
def test_grpc_media_type_alone_does_not_stream_the_request(calls, method):
    """Otherwise a client could switch off buffering and MinRate with a header."""
    with Http2Backend(lambda _: answer("hello")) as backend:
        with calls(backend.address.rpartition(":")[2]).server.connect() as c:
            c.ask("/", method, GRPC, streamed=True)
            c.more(b"a")
            time.sleep(0.5)
            assert not backend.requests and not backend.connections
            c.done()
            assert c.read().text == "hello"
        assert backend.requests[0].body == b"a"


def test_grpc_survives_the_restart_of_its_backend(backend, calls):
    call = calls(backend.port)("Unary")
    assert call(b"ab", timeout=20) == b"ba"
    backend.stop(None).wait()
    assert code_of(call, b"ab")[0] == grpc.StatusCode.UNAVAILABLE
    again = grpc.server(futures.ThreadPoolExecutor(4))
    again.add_generic_rpc_handlers((Handlers(),))
    again.add_insecure_port(f"127.0.0.1:{backend.port}")
    again.start()

    def answers():
        with contextlib.suppress(grpc.RpcError):
            return call(b"ab", timeout=20) == b"ba"

    wait_until(answers, "the backend serves again")
    again.stop(None)
