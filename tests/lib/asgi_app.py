# SPDX-License-Identifier: Apache-2.0
"""An ASGI application for test_asgi.py."""
import asyncio
import contextvars
import json
import os

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
    print("shut down", flush=True)
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


async def exit_program(_scope, _receive, _send):
    raise SystemExit(3)


async def teapot(_scope, _receive, send):
    await respond(send, b"short and stout", 418, [(b"x-a", b"1"), (b"x-a", b"2")])


PATHS = {"/count": count_bytes, "/echo": echo, "/stream": stream, "/endless": endless, "/wait": wait_for_disconnect,
         "/length": known_length, "/fail": fail, "/fail-late": fail_late, "/silent": silent, "/events": show_events,
         "/exit": end_process, "/task": show_task, "/cancel": cancel_itself, "/timeout": time_out, "/twice": receive_twice,
         "/later": work_later, "/system-exit": exit_program, "/process": process, "/teapot": teapot}


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
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            events.append([message["code"], message["reason"]])
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
