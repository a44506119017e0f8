# SPDX-License-Identifier: Apache-2.0
"""Sends REQUESTS requests of each kind to an ASGI application, and prints how many memory blocks the interpreter still
holds afterwards, per thousand requests; test_asgi.py runs it: asgi_leaks.py REQUESTS."""
import asyncio
import gc
import socket
import sys

from libmonkey.asgi import Host

REQUESTS = int(sys.argv[1])
BATCH = 10
GET = "GET {} HTTP/1.1\r\nHost: a\r\nX-Number: {}\r\n\r\n"
POST = "POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError
    path = scope["path"]
    if path == "/fail":
        raise asyncio.CancelledError
    if path in ("/body", "/wait"):
        await receive()
    if path == "/wait":
        await asyncio.sleep(0)
    if path == "/timeout":
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0.0001)
        except asyncio.TimeoutError:
            pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-a", b"%d" % id(scope))]})
    if path == "/stream":
        for _ in range(3):
            await send({"type": "http.response.body", "body": b"piece", "more_body": True})
            await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": bytes(10000)})


def ask(port, path, number):
    """Sends a batch of requests and one incomplete request over one connection, and disconnects after the last response."""
    with socket.create_connection(("127.0.0.1", port), 20) as client:
        request = POST if path in ("/body", "/wait") else GET
        client.sendall("".join(request.format(path, number + i) for i in range(BATCH)).encode() + request.format(path, 0).encode()[:-1])
        received = 0
        while received < BATCH * (100 if path == "/fail" else 10000):
            data = client.recv(65536)
            if not data:
                return
            received += len(data)


def ask_all(port):
    for path in ("/hello", "/body", "/wait", "/stream", "/timeout", "/fail"):
        for number in range(0, REQUESTS, BATCH):
            ask(port, path, number)


async def blocks():
    await asyncio.sleep(0.3)
    gc.collect()
    return sys.getallocatedblocks()


async def main():
    host = Host(app)
    port = host.server.listen("127.0.0.1:0")
    started = asyncio.Event()
    serving = asyncio.ensure_future(host.serve(started.set))
    await started.wait()
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, ask_all, port)
    before = await blocks()
    await loop.run_in_executor(None, ask_all, port)
    after = await blocks()
    host.server.stop(0)
    await serving
    print((after - before) * 1000 // REQUESTS, flush=True)


asyncio.run(main())
