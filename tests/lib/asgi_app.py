# SPDX-License-Identifier: Apache-2.0
"""An ASGI application for test_asgi.py."""
import asyncio
import contextvars
import json
import os
import time
import urllib.parse

events = []
variable = contextvars.ContextVar("variable", default="unset")


async def lifespan(scope, receive, send):
    assert (await receive())["type"] == "lifespan.startup"
    if os.environ.get("FAIL") == "startup":
        await send({"type": "lifespan.startup.failed", "message": "no database"})
        return
    scope["state"]["greeting"] = "from startup"
    await send({"type": "lifespan.startup.complete"})
    assert (await receive())["type"] == "lifespan.shutdown"
    print("shut down", *(["after background work"] if "background work done" in events else []), flush=True)
    await send({"type": "lifespan.shutdown.complete"})


async def respond(send, body, status=200, headers=()):
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain"), *headers]})
    await send({"type": "http.response.body", "body": body})


async def body_of(receive):
    parts = []
    while True:
        message = await receive()
        assert message["type"] == "http.request"
        parts.append(message["body"])
        if not message["more_body"]:
            return b"".join(parts)


async def show_scope(scope, _receive, send):
    shown = {key: value.decode() if isinstance(value, bytes) else value for key, value in scope.items() if key != "headers"}
    shown["headers"] = [[name.decode(), value.decode("latin-1")] for name, value in scope["headers"]]
    await respond(send, json.dumps(shown).encode())


async def count_bytes(_scope, receive, send):
    await respond(send, str(len(await body_of(receive))).encode())


async def echo(_scope, receive, send):
    """Streams the request body back while it arrives."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    more = True
    while more:
        message = await receive()
        more = message["more_body"]
        await send({"type": "http.response.body", "body": message["body"], "more_body": more})


async def stream(_scope, _receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for i in range(200):
        await send({"type": "http.response.body", "body": b"%d" % (i % 10) * 10000, "more_body": True})
    await send({"type": "http.response.body"})


async def endless(_scope, _receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    try:
        while True:
            await send({"type": "http.response.body", "body": bytes(10000), "more_body": True})
    except OSError:
        events.append("send failed")


class ClientDisconnect(Exception):
    """Like the exception of Starlette."""


async def translate_disconnect(scope, _receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    try:
        while True:
            await send({"type": "http.response.body", "body": bytes(10000), "more_body": True})
    except OSError:
        if scope["path"] == "/disconnect-bug":
            raise LookupError("a bug")
        raise ClientDisconnect


async def wait_for_disconnect(_scope, receive, _send):
    """The disconnect may be the first message: the client may disconnect before the application runs."""
    while (message := await receive())["type"] == "http.request":
        pass
    events.append(message["type"])


async def known_length(_scope, _receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"10")]})
    await send({"type": "http.response.body", "body": b"01234", "more_body": True})
    await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b"56789", "more_body": True})
    await send({"type": "http.response.body", "body": b""})
    events.append("known length sent")


async def fail(_scope, _receive, _send):
    raise RuntimeError("broken")


async def fail_late(_scope, _receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": bytes(1000000), "more_body": True})
    raise RuntimeError("broken")


async def silent(_scope, _receive, _send):
    """Returns without a response."""


async def show_events(_scope, _receive, send):
    await respond(send, json.dumps(events).encode())


async def end_process(_scope, _receive, _send):
    os._exit(7)


async def process(_scope, _receive, send):
    await respond(send, str(os.getpid()).encode())


async def show_task(_scope, _receive, send):
    """Returns what libraries can see of the task that runs the application, before and after the application has waited."""
    task, before = asyncio.current_task(), variable.get()
    variable.set("set")
    found = [before, isinstance(task, asyncio.Task), task in asyncio.all_tasks(), task.done()]
    await asyncio.sleep(0.001)
    found += [variable.get(), asyncio.current_task() is task, task in asyncio.all_tasks(), task.get_stack() != []]
    await respond(send, json.dumps(found).encode())


async def cancel_itself(_scope, _receive, send):
    waiting = asyncio.get_running_loop().create_future()
    asyncio.current_task().cancel()
    try:
        await waiting
    except asyncio.CancelledError:
        await respond(send, b"cancelled, and so was the future" if waiting.cancelled() else b"cancelled")


async def time_out(_scope, receive, send):
    """A receive() that times out loses no part of the body."""
    timeouts = 0
    while True:
        try:
            message = await asyncio.wait_for(receive(), 0.01)
            break
        except asyncio.TimeoutError:
            timeouts += 1
    await respond(send, b"%s after %s" % (message["body"], b"timeouts" if timeouts else b"none"))


async def receive_twice(_scope, receive, send):
    """Two tasks receive at the same time: both get the disconnect."""
    await receive()
    waiting = [asyncio.ensure_future(receive()) for _ in range(2)]
    await asyncio.sleep(0)
    await respond(send, b"done")
    for message in await asyncio.gather(*waiting):
        events.append(f"twice {message['type']}")


async def work_later(_scope, _receive, send):
    await respond(send, b"first")
    await asyncio.sleep(0.01)
    events.append("worked later")


def block(scope):
    """Blocks the event loop until the client has created the file that the query names."""
    file, end = urllib.parse.unquote(scope["query_string"].decode()), time.monotonic() + 10
    while not os.path.exists(file):
        if time.monotonic() > end:
            events.append("the client received nothing")
            return
        time.sleep(0.01)
    events.append("the client received it")


async def block_after_response(scope, _receive, send):
    if scope["path"] == "/block-later":
        await asyncio.sleep(0.001)
    await respond(send, b"first")
    block(scope)


async def block_within_body(scope, _receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/block-later-within-body":
        await asyncio.sleep(0.001)
    await send({"type": "http.response.body", "body": b"first", "more_body": True})
    block(scope)
    await send({"type": "http.response.body", "body": b"last"})


async def send_head_first(scope, receive, send):
    """Sends the head, and the body when the client has sent the end of the request."""
    if scope["path"] == "/head-later":
        await asyncio.sleep(0.001)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-early", b"yes")]})
    if scope["path"] == "/head-empty":
        await send({"type": "http.response.body", "body": b"", "more_body": True})
    await send({"type": "http.response.body", "body": await body_of(receive)})


async def fail_after_start(_scope, _receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise RuntimeError("broken")


async def send_trailers(scope, _receive, send):
    waits = scope["path"].startswith("/trailers-later")
    length = [(b"content-length", b"4")] if scope["path"] == "/trailers-length" else []
    await send({"type": "http.response.start", "status": 200, "headers": length, "trailers": True})
    for body, more in ((b"bo", True), (b"dy", False)):
        if waits:
            await asyncio.sleep(0.001)
        await send({"type": "http.response.body", "body": body, "more_body": more})
    if scope["path"].endswith("omitted"):
        return
    await send({"type": "http.response.trailers", "headers": [(b"x-sum", b"1")], "more_trailers": True})
    if waits:
        await asyncio.sleep(0.001)
    if scope["path"].endswith("broken"):
        raise RuntimeError("broken")
    await send({"type": "http.response.trailers", "headers": [(b"x-end", b"2")]})
    events.append("trailers sent")


async def send_file(scope, _receive, send):
    if scope["path"] == "/file-later":
        await asyncio.sleep(0.001)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})  # the server sends the size of the file instead
    try:
        await send({"type": "http.response.pathsend", "path": urllib.parse.unquote(scope["query_string"].decode())})
    except OSError as problem:
        events.append(type(problem).__name__)
        raise RuntimeError("no file") from problem


async def send_hint(scope, _receive, send):
    if scope["path"] == "/hint-later":
        await asyncio.sleep(0.001)
    await send({"type": "http.response.early_hint", "links": [b"</a.css>; rel=preload", b"</b.js>; rel=preload"]})
    block(scope)
    await respond(send, b"hinted")


async def work_in_background(_scope, _receive, send):
    await respond(send, b"working")
    await asyncio.sleep(0.5)
    events.append("background work done")


async def exit_program(_scope, _receive, _send):
    raise SystemExit(3)


async def teapot(_scope, _receive, send):
    await respond(send, b"short and stout", 418, [(b"x-a", b"1"), (b"x-a", b"2")])


PATHS = {"/count": count_bytes, "/echo": echo, "/stream": stream, "/endless": endless, "/wait": wait_for_disconnect,
         "/length": known_length, "/fail": fail, "/fail-late": fail_late, "/silent": silent, "/events": show_events,
         "/exit": end_process, "/task": show_task, "/cancel": cancel_itself, "/timeout": time_out, "/twice": receive_twice,
         "/later": work_later, "/system-exit": exit_program, "/process": process, "/teapot": teapot,
         "/block": block_after_response, "/block-later": block_after_response, "/block-within-body": block_within_body,
         "/block-later-within-body": block_within_body, "/head-first": send_head_first, "/head-later": send_head_first,
         "/head-empty": send_head_first, "/fail-after-start": fail_after_start, "/trailers": send_trailers,
         "/trailers-later": send_trailers, "/trailers-length": send_trailers, "/trailers-omitted": send_trailers,
         "/trailers-later-omitted": send_trailers, "/trailers-broken": send_trailers, "/file": send_file, "/file-later": send_file,
         "/hint": send_hint, "/hint-later": send_hint, "/disconnect": translate_disconnect, "/disconnect-bug": translate_disconnect, "/background": work_in_background}


async def websocket(scope, receive, send):
    assert (await receive())["type"] == "websocket.connect"
    if scope["path"] == "/deny":
        await send({"type": "websocket.http.response.start", "status": 401, "headers": [(b"x-why", b"no token")]})
        await send({"type": "websocket.http.response.body", "body": b"who are you?"})
        return
    if scope["path"] == "/close":
        await send({"type": "websocket.close"})
        return
    await send({"type": "websocket.accept", "subprotocol": (scope["subprotocols"] or [None])[-1], "headers": [(b"x-ws", b"yes")]})
    if scope["path"] == "/flood":
        for _ in range(200):
            await send({"type": "websocket.send", "bytes": bytes(20000)})
        await send({"type": "websocket.close", "code": 4001, "reason": "enough"})
    if scope["path"] == "/fail":
        raise RuntimeError("broken")
    if scope["path"] == "/invalid":
        for message in ({"code": 5}, {"code": -1}, {"reason": "x" * 124}):
            try:
                await send({"type": "websocket.close", **message})
            except ValueError:
                events.append("invalid close")
        await send({"type": "websocket.close", "code": 4000})
    if scope["path"] == "/block":
        await send({"type": "websocket.send", "text": "first"})
        block(scope)
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            events.append([message["code"], message["reason"]])
            await send({"type": "websocket.close"})  # has no effect, and raises nothing
            events.append("closed after the client")
            return
        await send({"type": "websocket.send", **{key: value for key, value in message.items() if key != "type"}})


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await lifespan(scope, receive, send)
    elif scope["type"] == "websocket":
        await websocket(scope, receive, send)
    else:
        await PATHS.get(scope["path"], show_scope)(scope, receive, send)


async def plain(scope, _receive, send):
    """Does not support the Lifespan protocol."""
    assert scope["type"] == "http"
    await respond(send, b"plain")


def make_app():
    return plain
