# SPDX-License-Identifier: Apache-2.0
"""An application as users of the Python binding would write it; test_python.py runs it: python_app.py threads|loop|asyncio."""
import asyncio
import signal
import sys

import libmonkey

server = libmonkey.Server(on_log=lambda level, text: print(level, text, file=sys.stderr))
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
