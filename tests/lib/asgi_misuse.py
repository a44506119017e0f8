# SPDX-License-Identifier: Apache-2.0
"""An ASGI application that misuses receive() and send() in every possible way, and clients that disconnect at any time; test_asgi.py
runs it: asgi_misuse.py SEED REQUESTS.

Misuse may raise an exception, but must neither crash the program, nor leak objects, nor leave a request without a response. The
program prints `end` if it survives.
"""
import asyncio
import gc
import http.client
import io
import random
import socket
import sys
import threading

from libmonkey.asgi import Host

SEED, REQUESTS = int(sys.argv[1]), int(sys.argv[2])
THREADS = 3
RANDOM = random.Random(SEED)
kept = []  # (receive, send) pairs of requests that may have ended
problems = []

START = {"type": "http.response.start", "status": 200, "headers": [(b"x-a", b"b")]}
BODY = {"type": "http.response.body", "body": b"hello"}
TRAILERS = {"type": "http.response.trailers", "headers": [(b"x-t", b"u")]}
PATH = {"type": "http.response.pathsend", "path": __file__}
HINT = {"type": "http.response.early_hint", "links": [b"</a.css>; rel=preload"]}
MESSAGES = [START, BODY, {**BODY, "more_body": True}, {"type": "http.response.body"}, {**BODY, "body": bytes(100000), "more_body": True},
            {}, {"type": 5}, {"type": "none"}, {"type": "http.response.start"}, {**START, "status": "200"}, {**START, "status": 99999},
            {**START, "status": 2 ** 70}, {**START, "headers": 5}, {**START, "headers": [5]}, {**START, "headers": [(b"a",)]},
            {**START, "headers": [("a", "b")]}, {**START, "headers": [[b"x-list", bytearray(b"c")]]}, {**START, "headers": [(b"a b", b"c")]},
            {**START, "headers": [(b"content-length", b"-5")]}, {**START, "headers": ((b"content-length", b"5"),)},
            {**START, "headers": iter([(b"a", b"b")])}, {**BODY, "body": "text"}, {**BODY, "body": 5}, {**BODY, "body": None},
            {**BODY, "body": memoryview(b"abc")}, {**BODY, "body": bytearray(b"abc")}, {**BODY, "more_body": object()},
            {**START, "trailers": True}, {**START, "trailers": object()}, TRAILERS, {**TRAILERS, "more_trailers": True}, {**TRAILERS, "headers": 5},
            {**TRAILERS, "headers": [(b"a b", b"c")]}, {**TRAILERS, "headers": [(b"x-t", bytes(20000))]}, {"type": "http.response.trailers"},
            PATH, {**PATH, "path": "/none"}, {**PATH, "path": b"/dev/zero"}, {**PATH, "path": "/"}, {**PATH, "path": "a\0b"}, {**PATH, "path": 5},
            {"type": "http.response.pathsend"}, HINT, {**HINT, "links": ["text"]}, {**HINT, "links": [b"a\nb"]}, {**HINT, "links": 5},
            {**HINT, "links": [b"x"] * 10000}, {**HINT, "links": []}, {"type": "http.response.early_hint"}]


ACCEPT = {"type": "websocket.accept"}
SOCKET = {"type": "websocket.send"}
CLOSE = {"type": "websocket.close"}
DENY = {"type": "websocket.http.response.start", "status": 401, "headers": []}
MESSAGES += [ACCEPT, ACCEPT, ACCEPT, {**ACCEPT, "subprotocol": "none"}, {**ACCEPT, "subprotocol": 5}, {**ACCEPT, "headers": [(b"a b", b"c")]},
             {**ACCEPT, "headers": 5}, {**SOCKET, "text": "text"}, {**SOCKET, "bytes": b"bytes"}, {**SOCKET, "bytes": bytes(3000000)}, {**SOCKET, "text": 5},
             {**SOCKET, "text": "\ud800"}, SOCKET, {**SOCKET, "bytes": None}, CLOSE, {**CLOSE, "code": 5}, {**CLOSE, "code": "x"}, {**CLOSE, "code": 2 ** 70},
             {**CLOSE, "reason": "x" * 200}, {**CLOSE, "reason": 5}, DENY, {**DENY, "status": 9}, {**DENY, "status": "x"}, {**DENY, "headers": [(1, 2)]},
             {"type": "websocket.http.response.body", "body": b"no"}, {"type": "websocket.http.response.body", "body": 5, "more_body": True}]


async def use(receive, send, n):
    """Calls receive() and send() n times, correctly or not."""
    for _ in range(n):
        what = RANDOM.randrange(14)
        try:
            if what < 6:
                await send(RANDOM.choice(MESSAGES))
            elif what == 6:
                await asyncio.wait_for(receive(), RANDOM.choice([0, 0.001]))
            elif what == 7:
                receive(), send(START)  # never awaited
            elif what == 8:
                same = receive()
                await asyncio.wait_for(asyncio.gather(same, same, receive(), return_exceptions=True), 0.01)
            elif what == 9:
                await asyncio.sleep(RANDOM.choice([0, 0.001]))
            elif what == 10:
                same = send(BODY)
                same.close()
                await same
            elif what == 11:
                asyncio.ensure_future(receive()).cancel()
            elif what == 12:
                thread = threading.Thread(target=use_in_thread, args=(receive, send))
                thread.start()
                thread.join()
            else:
                receive().throw(ValueError("thrown"))
        except asyncio.CancelledError:
            if asyncio.current_task() is None:
                problems.append("no current task")
            raise
        except (RuntimeError, OSError, TypeError, ValueError, LookupError, AttributeError, OverflowError, asyncio.TimeoutError):
            pass


def use_in_thread(receive, send):
    if hasattr(receive, "__func__"):  # of a WebSocket: only its C functions check the thread
        for awaitable in (receive(), send(ACCEPT), send(CLOSE), send({**SOCKET, "text": "text"})):
            try:
                awaitable.send(None)
            except (RuntimeError, OSError, StopIteration):
                pass
            awaitable.close()
        return
    for awaitable in (receive(), send(START)):
        try:
            awaitable.send(None)
            problems.append("another thread used a request")
        except RuntimeError:
            pass


async def cancel_itself(_receive, _send):
    asyncio.current_task().cancel()
    await asyncio.sleep(0)


async def use_kept(_receive, _send):
    for receive, send in RANDOM.sample(kept, min(len(kept), 3)):
        await use(receive, send, 3)


async def touch_task(receive, send):
    """Inspects its task and coroutine, as debuggers do, and calls coroutine methods that only the event loop may call."""
    task = asyncio.current_task()
    coroutine = task.get_coro()
    repr(task), task.get_stack(), task.print_stack(file=io.StringIO())
    for name in ("cr_frame", "cr_running", "cr_await", "__name__", "none", "_scope"):
        getattr(coroutine, name, None)
    for attack in (lambda: coroutine.send(None), lambda: coroutine.send(5), lambda: coroutine.throw(ValueError("thrown")), lambda: next(coroutine),
                   coroutine.close, lambda: type(coroutine)(), lambda: type(receive())(), lambda: coroutine.throw(5), lambda: coroutine.throw()):
        if RANDOM.random() < 0.2:
            try:
                attack()
            except (RuntimeError, ValueError, TypeError, StopIteration):
                pass
    await use(receive, send, 3)


async def fail(_receive, _send):
    raise RANDOM.choice([RuntimeError, OSError, asyncio.CancelledError, StopAsyncIteration, GeneratorExit])


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError
    if scope["type"] == "websocket" and RANDOM.random() < 0.7:
        await receive()
        await send(ACCEPT)
    scope["asgi"].clear(), scope["extensions"].update(a=1), scope.pop("path"), scope["headers"].clear()
    kept.append((receive, send))
    del kept[:-50]
    how = RANDOM.choice([use, use, use, cancel_itself, use_kept, touch_task, fail])
    await (use(receive, send, RANDOM.randrange(8)) if how is use else how(receive, send))


def app_or_nonsense(scope, receive, send):
    """An application that is not a coroutine function: it may return a task or None, or raise an exception."""
    what = RANDOM.randrange(20) if scope["type"] == "http" else 20
    if what == 0:
        return None
    if what == 1:
        raise RuntimeError("broken")
    if what == 2:
        return asyncio.ensure_future(app(scope, receive, send))
    return app(scope, receive, send)


def ask_socket(port, random_bytes):
    with socket.create_connection(("127.0.0.1", port), 5) as client:
        client.settimeout(random_bytes.choice([0.05, 0.2]))
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                       b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: none\r\n\r\n")
        try:
            client.recv(1000)
            client.sendall(b"\x81\x82\0\0\0\0hi" + random_bytes.choice([b"", b"\x88\x80\0\0\0\0", b"\xff\xff", b"\x81\x81\0\0\0\0\xff"]))
            client.recv(100000)
        except OSError:
            pass


def ask(port, number):
    random_bytes = random.Random(number)
    body = random_bytes.choice([None, None, b"x" * 10, b"x" * 200000])
    if random_bytes.random() < 0.2:  # disconnects at once
        with socket.create_connection(("127.0.0.1", port), 5) as client:
            client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc"[:random_bytes.randrange(60)])
        return
    if random_bytes.random() < 0.2:
        ask_socket(port, random_bytes)
        return
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=random_bytes.choice([0.05, 0.2]))
    try:
        connection.request("POST" if body else "GET", f"/{number}", body)
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        pass
    finally:
        connection.close()


def attack(port, first):
    for number in range(first, first + REQUESTS // THREADS):
        ask(port, number)


def attack_from_threads(port):
    threads = [threading.Thread(target=attack, args=(port, 100000 * n)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


async def main():
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    host = Host(app_or_nonsense)
    port = host.server.listen("127.0.0.1:0")
    started = asyncio.Event()
    serving = asyncio.ensure_future(host.serve(started.set))
    await started.wait()
    await asyncio.get_running_loop().run_in_executor(None, attack_from_threads, port)
    host.server.stop(0.2)
    await serving
    for receive, send in kept:
        await use(receive, send, 2)
    gc.collect()


sys.stderr = io.StringIO()  # hundreds of tracebacks
asyncio.run(main())
assert not problems, problems
print("end", flush=True)
