# SPDX-License-Identifier: Apache-2.0
"""A program that misuses the Python binding in every possible way; test_python.py runs it: python_misuse.py
threads|loop|asyncio|drop SEED.

Misuse may raise an exception, but must neither crash the program nor expose one request to another. The program prints `end` if
it survives.
"""
import asyncio
import ctypes
import gc
import http.client
import io
import random
import socket
import sys
import threading
import time

import libmonkey

HOW, SEED = sys.argv[1], int(sys.argv[2])
RANDOM = random.Random(SEED)
kept = []  # (request, response) pairs of requests that may have ended
kept_deferred = []
kept_sockets = []
leaks = []  # values that belong to another request

server = libmonkey.Server(on_log=lambda level, text: use_kept())


def uses(request, response):
    """Uses every attribute and method."""
    for name in ("method", "target", "path", "query", "host", "scheme", "peer", "version", "content"):
        yield lambda name=name: getattr(request, name)
    yield lambda: request.header("X-Secret")
    yield request.headers
    yield request.trailers
    yield lambda: request.cookie("a")
    yield lambda: request.cookie("a\0b")
    yield lambda: request.cookie(5)
    yield lambda: request.param("id")
    yield lambda: request.param("a\0b")
    yield request.read_now
    yield lambda: request.defer().respond("deferred without a handler that returns it")
    yield lambda: response.set_status(404)
    yield lambda: response.add("X-A", "b")
    yield lambda: response.set("X-A", 5)
    yield lambda: response.set(b"X-A\n", "b" * 100000)
    yield lambda: response.remove("X-A")
    yield lambda: response.remove(None)
    yield lambda: response.add_trailer("X-T", "u")
    yield lambda: response.add_trailer("Content-Length", "5")
    yield lambda: response.add_trailer("X-T", "u" * 100000)
    yield lambda: response.set_status(-1)
    yield lambda: response.set_status("200")
    yield lambda: response.set_status(2 ** 70)
    yield lambda: response.send_file("/none")
    yield lambda: response.send_file(__file__)
    yield lambda: response._set_content(b"x")


def use(request, response):
    for attempt in uses(request, response):
        try:
            attempt()
        except (libmonkey.Ended, RuntimeError, OSError, TypeError, ValueError, OverflowError, ctypes.ArgumentError):
            pass


def use_socket(ws):
    for attempt in (lambda: ws.send("text"), lambda: ws.send(b"bytes"), lambda: ws.send(5), lambda: ws.send(bytes(300000)), lambda: ws.close(5),
                    lambda: ws.close(1000, "x" * 200), lambda: ws.request.path, lambda: ws.close("x"), lambda: ws.receive().send(None),
                    ws.ping, lambda: ws.ping(b"x" * 126), lambda: ws.ping(5), lambda: ws.subprotocol, ws.abort, lambda: ws.close(2 ** 70),
                    lambda: ws.close(-1), lambda: setattr(ws, "on_pong", 5),
                    lambda: type(ws)(1, 2)):
        if RANDOM.random() < 0.5:
            try:
                attempt()
            except (libmonkey.Ended, RuntimeError, OSError, TypeError, ValueError, StopIteration, ctypes.ArgumentError):
                pass


def use_deferred(deferred):
    for attempt in (lambda: deferred.has_ended, lambda: deferred.respond(RANDOM.choice(RESULTS)()), lambda: deferred.respond(deferred),
                    lambda: deferred.fail(RuntimeError("failed"))):
        if RANDOM.random() < 0.5:
            try:
                attempt()
            except (libmonkey.Ended, RuntimeError):
                pass


def use_kept():
    for deferred in RANDOM.sample(kept_deferred, min(len(kept_deferred), 2)):
        use_deferred(deferred)
    for ws in RANDOM.sample(kept_sockets, min(len(kept_sockets), 2)):
        use_socket(ws)
    for request, response in RANDOM.sample(kept, min(len(kept), 3)):
        try:
            secret = request.header("X-Secret")
        except (libmonkey.Ended, RuntimeError):
            secret = request.own
        if secret != request.own:
            leaks.append((secret, request.own))
        use(request, response)


def keep(request, response):
    request.own = request.header("X-Secret")
    kept.append((request, response))
    del kept[:-50]
    use_kept()


class MixedList:
    def __iter__(self):
        return iter(["a", 5])


RESULTS = [lambda: {"a": [1, None]}, lambda: ["a", "b"], lambda: ("made", 201), lambda: ("made", 201, {"X-B": "c"}), lambda: (), lambda: ("a", "b"),
           lambda: ("a", True), lambda: 5, lambda: 204, lambda: 404, lambda: 99999, lambda: -1, lambda: 2 ** 70, lambda: True, lambda: 1.5, object,
           MixedList, lambda: iter(MixedList()), lambda: iter([1]), lambda: io.BytesIO(b"a\nb\n"), lambda: memoryview(b"abc"), lambda: {1: object()},
           lambda: ({"a": 1}, 202), lambda: (x for x in ["a", b"b"]), lambda: map(str, range(5))]


@server.route("GET /keep/:id")
def keeping(request, response):
    keep(request, response)
    return "kept"


@server.route("/odd/:id", content=True)
def odd(request, response):
    keep(request, response)
    return RANDOM.choice(RESULTS)()


@server.route("GET /lazy/:id")
def lazy(request, response):
    keep(request, response)
    for _ in range(RANDOM.randrange(4)):
        use_kept()
        yield request.header("X-Secret")


@server.route("GET /close/:id")
def close(request, response):
    keep(request, response)
    for function in (server.close, server.run, server.wait, lambda: server.start(1), lambda: asyncio.run(server.serve())):
        try:
            function()
        except (RuntimeError, libmonkey.Error):
            pass
    control()
    return "tried"


def control():
    """Calls all functions that change a server, correctly or not."""
    for function in (lambda: server.unlisten(f"127.0.0.1:{server.listen('127.0.0.1:0')}"), lambda: server.unlisten("127.0.0.1:1"),
                     lambda: server.unlisten("x\0"), lambda: server.unlisten(5), lambda: server.listen("127.0.0.1:0", tls=True), lambda: server.listen("x" * 9999),
                     server.addresses, lambda: [s.close() for s in server.listener_sockets()], lambda: server.replace_certificate("x", "y"),
                     lambda: server.replace_certificate(5), lambda: server.add_certificate(b"\0"), lambda: server.add_files({"/a": b"b"}),
                     lambda: server.add_files({5: b"b"}), lambda: server.add_files({"/a": 5}), lambda: server.set_accept_filter(5),
                     lambda: server.pause_accepting() or server.resume_accepting(), server.resume_accepting, lambda: server.set("SERVER", "KeepAlive", "x\n"),
                     lambda: server.set("a\0", 5, object()), lambda: server.read("/none"), lambda: server.add_section("[" * 1000),
                     lambda: asyncio.run(server.serve()), server.run, lambda: server.start(10 ** 9), lambda: server.start(-1),
                     lambda: server.listen_socket(5), lambda: server.route("GET /late")(show), lambda: server.route(5)(show),
                     lambda: server.websocket("/late", message_max=2 ** 70)(show), lambda: server.stop(float("nan"))):
        if RANDOM.random() < 0.3:
            try:
                function()
            except (RuntimeError, libmonkey.Error, TypeError, ValueError, AttributeError, OSError, OverflowError, ctypes.ArgumentError):
                pass


def show(_request, _response):
    return "shown"


@server.route("GET /thread/:id")
def in_thread(request, response):
    keep(request, response)
    thread = threading.Thread(target=lambda: (use(request, response), control()))
    thread.start()
    thread.join()
    return "joined"


@server.route("GET /slow/:id")
async def slow(request, response):
    keep(request, response)
    try:
        await asyncio.sleep(RANDOM.choice([0, 0.001, 10]))
        use_kept()
        return RANDOM.choice(RESULTS)()
    except asyncio.CancelledError:
        use(request, response)
        raise


@server.route("POST /read/:id")
async def read(request, response):
    keep(request, response)
    size = 0
    async for piece in request:
        size += len(piece)
    return str(size)


@server.route("GET /defer/:id")
def defer(request, response):
    keep(request, response)
    deferred = request.defer()
    kept_deferred.append(deferred)
    del kept_deferred[:-20]
    threading.Thread(target=lambda: (time.sleep(RANDOM.choice([0, 0.001, 0.1])), use_deferred(deferred))).start()
    return RANDOM.choice([deferred, deferred, deferred, "not deferred", RANDOM.choice(kept_deferred)])


@server.websocket("/socket/:id")
def handle_socket(ws):
    kept_sockets.append(ws)
    del kept_sockets[:-20]
    how = RANDOM.randrange(4)
    if how == 0:
        raise RuntimeError("broken")
    if how == 1:
        return receive_messages(ws)
    if how == 2:
        ws.on_message = ws.on_close = 5
    use_socket(ws)


async def receive_messages(ws):
    async for data in ws:
        use_socket(ws)
        await ws.send_when_writable(data)


def ask_socket(port, number):
    with socket.create_connection(("127.0.0.1", port), 0.2) as client:
        client.sendall(f"GET /socket/{number} HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
        client.recv(1000)
        client.sendall(b"\x81\x82\0\0\0\0hi" + RANDOM.choice([b"", b"\x88\x80\0\0\0\0", b"\xff\xff"]))
        client.recv(1000)


def ask(port, number):
    kind = RANDOM.choice(["keep", "odd", "lazy", "close", "thread", "slow", "read", "defer", "socket"])
    if kind == "socket":
        try:
            ask_socket(port, number)
        except OSError:
            pass
        return
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=RANDOM.choice([0.05, 5]))
    try:
        body = None if kind in ("keep", "lazy", "close", "thread", "slow", "defer") else b"x" * RANDOM.choice([0, 10, 200000])
        connection.request("POST" if body is not None else "GET", f"/{kind}/{number}", body, {"X-Secret": f"secret-{number}"})
        if RANDOM.random() < 0.7:
            connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        pass
    finally:
        connection.close()


def attack(port, first):
    for number in range(first, first + 60):
        ask(port, number)
        use_kept()
        if number % 20 == 0:
            gc.collect()


def attack_from_threads(port):
    threads = [threading.Thread(target=attack, args=(port, 1000 * n)) for n in range(4)]
    for thread in threads:
        thread.start()
    return threads


def join(threads):
    for thread in threads:
        thread.join()


async def serve(port):
    serving = asyncio.ensure_future(server.serve())
    threads = attack_from_threads(port)
    await asyncio.get_running_loop().run_in_executor(None, join, threads)
    server.close() if SEED % 2 else server.stop(0.5)
    await serving


def main():
    global server
    port = server.listen("127.0.0.1:0")
    if HOW == "asyncio":
        asyncio.run(serve(port))
    elif HOW == "loop":
        thread = threading.Thread(target=server.run)
        thread.start()
        join(attack_from_threads(port))
        server.close() if SEED % 2 else server.stop(0.5)
        thread.join()
    else:
        server.start(3)
        join(attack_from_threads(port))
        if HOW == "drop":  # the server keeps running until the interpreter exits
            threads = attack_from_threads(port)
            server = None
            gc.collect()
            join(threads)
            assert not leaks, leaks
            print("end", flush=True)
            return
    server.close()
    server.close()
    use_kept()
    for _ in range(10):
        control()
    server.stop()
    assert not leaks, leaks
    print("end", flush=True)


main()
