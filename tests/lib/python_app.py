# SPDX-License-Identifier: Apache-2.0
"""An application as users of the Python binding would write it; test_python.py runs it: python_app.py threads|loop|asyncio."""
import asyncio
import os
import signal
import sys
import threading
import time

import libmonkey

server = libmonkey.Server(on_log=lambda level, text: print(level, text, file=sys.stderr))
kept_deferred = []
ended = []  # what generators and coroutines record when they end


@server.route("GET /hello")
def hello(request, response):
    response.add("X-Path", request.path)
    return f"hello {request.query} by {request.method}\n"


@server.route("GET /users/:id<int>/:name")
def user(request, _response):
    return repr((request.param("id"), request.param("name"), request.param("none"), dict(request.headers())["Host"] != ""))


@server.route("GET /numbers")
def numbers(request, _response):
    try:
        for n in range(int(request.query)):
            yield f"{n}\n"
    finally:
        ended.append("numbers")


@server.route("GET /ended")
def tell_ended(_request, _response):
    return " ".join(ended)


@server.route("POST /length", content=True)
def length(request, _response):
    return f"{len(request.content)}\n"


@server.route("GET /file")
def this_file(_request, response):
    response.send_file(__file__)


@server.route("GET /wrong")
def wrong(_request, _response):
    raise RuntimeError("a mistake in the handler")


@server.route("GET /gone")
def gone(_request, _response):
    return 410


@server.route("POST /upload")
async def upload(request, _response):
    size = 0
    async for piece in request:
        size += len(piece)
        await asyncio.sleep(0)
    return f"{size}\n"


@server.route("GET /ticks")
async def ticks(_request, _response):
    for n in range(3):
        await asyncio.sleep(0.001)
        yield f"tick {n}\n"


@server.route("GET /ever")
async def ever(_request, _response):
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        ended.append("ever")
        raise


@server.route("GET /later")
def later(request, _response):
    """Other threads respond: at once, later, and when the client may be gone."""
    deferred = request.defer()
    delay = float(request.query)

    def work():
        time.sleep(delay)
        try:
            deferred.respond(({"deferred": delay}, 201, {"X-Late": "yes"}))
            deferred.respond("again")
        except (RuntimeError, libmonkey.Ended) as problem:
            ended.append(f"later-{type(problem).__name__}")

    thread = threading.Thread(target=work)
    thread.start()
    if delay == 0:
        thread.join()
    return deferred


@server.route("GET /fail-later")
def fail_later(request, _response):
    deferred = request.defer()
    threading.Thread(target=lambda: deferred.fail(RuntimeError("a mistake in the thread"))).start()
    return deferred


@server.route("GET /foreign-deferred")
def foreign_deferred(request, _response):
    return kept_deferred[0] if kept_deferred else kept_deferred.append(request.defer()) or kept_deferred[0]


@server.route("GET /kept-deferreds")
def kept_deferreds(_request, _response):
    return str(len(kept_deferred))


@server.route("GET /events", events=True)
def events(_request, _response):
    yield "one\ntwo"
    yield {"json": 1}
    yield libmonkey.Event("named", name="tick", id="7", retry_ms=1000)
    yield libmonkey.Event()


@server.websocket("/echo", subprotocols="one,two")
def echo(socket):
    socket.on_message = lambda data: socket.send(data) if data != "close" else socket.close(4001, "asked to")
    socket.on_close = lambda code, reason: ended.append(f"echo-{code}-{reason}")
    socket.send(f"hello {socket.request.path}")


@server.websocket("/fail")
def fail(socket):
    socket.on_message = lambda data: 1 // 0


@server.websocket("/flood")
async def flood(socket):
    """Sends more data than the client reads, and then echoes the messages that it receives."""
    for _ in range(200):
        await socket.send_when_writable(bytes(20000))
    async for data in socket:
        await socket.send_when_writable(data)
    ended.append(f"flood-{socket.close_code}")


@server.route("GET /interrupt")
def interrupt(_request, _response):
    """Ctrl-C while a handler runs."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)
    return "not interrupted"


def stop(*_signal):
    server.stop(drain=5)


async def serve():
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop)
    await server.serve()


def main(how):
    print(f"http://127.0.0.1:{server.listen()}/hello", flush=True)
    if how == "asyncio":
        asyncio.run(serve())
    elif how == "loop":
        signal.signal(signal.SIGTERM, stop)
        server.run()
    else:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        server.start(3)
        signal.sigwait([signal.SIGTERM])
        stop()
        server.wait()
    server.close()


main(sys.argv[1])
