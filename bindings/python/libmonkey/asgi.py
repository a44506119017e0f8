# SPDX-License-Identifier: Apache-2.0
"""An ASGI 3 server: serves applications written with Starlette, FastAPI, Django, Quart, ... See monkey-asgi --help.

Everything runs in the thread of the event loop: when the server's descriptor is readable, the loop calls mk_server_step(), which
calls the handler of each request. The extension _asgi, written in C (see ../src/exchange.h), handles HTTP requests, and calls the
application within the handler. This module handles the rest: Lifespan and WebSocket.
"""
from __future__ import annotations

import asyncio
import collections
import errno
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, cast

from . import _asgi
from ._asgi import Disconnected
from .api import DONE, REFUSE, WAIT, lib
from .server import Error, Server
from .websocket import count_bytes

__all__ = ["Disconnected", "Host"]

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MESSAGES_MAX = 1024 * 1024  # reading from a WebSocket pauses when the messages that wait for receive() total this many bytes
ABNORMAL = 1006  # close code of a WebSocket that ended without a closing handshake

DISCONNECT_NAMES = ("ClientDisconnect", "RequestAborted")  # raised by Starlette and Litestar, and by Django

_asgi.bind(lib._handle)


class WebSocket(_asgi.Socket):
    """A WebSocket, from the request that opens it until finish(). `_is_open` is True while the WebSocket is open. Before that, the
    application may reject the request with an HTTP response."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.accepted: Message | None = None
        self.denial: tuple[int, list[tuple[bytes, bytes]], bytes] | None = None
        self.received: collections.deque[Message] = collections.deque([{"type": "websocket.connect"}])
        self.size = 0
        self.reader: asyncio.Future[None] | None = None
        self.writer: asyncio.Future[None] | None = None
        self.task: asyncio.Task[None] | None = None
        self.is_paused = self.has_ended = self.close_sent = False

    # ---- Called by the library ----

    def handle(self) -> int:
        if self.accepted is not None:
            return self.open(self.accepted)
        if self.denial is not None or (self.task and self.task.done()) or self.close_sent:
            return self.deny()
        return WAIT

    def open(self, accepted: Message) -> int:
        subprotocol = accepted.get("subprotocol")
        if not self._open(subprotocol.encode() if subprotocol else None, list(accepted.get("headers") or ())):
            self.finish(ABNORMAL, "")
            return REFUSE
        self.wake_writer()
        return DONE

    def deny(self) -> int:
        self.has_ended = True
        if self.denial is None:
            self._refuse(403 if self.close_sent else 500, [], None)
            return REFUSE
        self._refuse(*self.denial)
        return DONE

    def on_message(self, data: str | bytes) -> None:
        self.size += count_bytes(data)
        self.receive_later({"type": "websocket.receive", "text" if isinstance(data, str) else "bytes": data})
        if self.size >= MESSAGES_MAX and self._is_open:
            self.is_paused = True
            self._pause(True)

    def finish(self, code: int, reason: str) -> None:
        """Called when the WebSocket is closed or the client has disconnected."""
        if not self.has_ended:
            self.has_ended = True
            self.receive_later({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.wake_writer()

    def end(self) -> None:
        """Called when the request has ended."""
        self.finish(ABNORMAL, "")

    def receive_later(self, message: Message) -> None:
        self.received.append(message)
        if self.reader and not self.reader.done():
            self.reader.set_result(None)

    def wake_writer(self) -> None:
        if self.writer and not self.writer.done():
            self.writer.set_result(None)

    # ---- Called by the application ----

    async def receive(self) -> Message:
        while not self.received:
            self.reader = self.loop.create_future()
            await self.reader
        message = self.received.popleft()
        self.size -= count_bytes(message.get("text") or message.get("bytes") or b"")
        if self.is_paused and self.size < MESSAGES_MAX // 2:
            self.is_paused = False
            self._pause(False)
        return message

    async def wait_writable(self) -> None:
        self.writer = self.loop.create_future()
        await self.writer

    async def send(self, message: Message) -> None:
        kind = message["type"]
        if self.has_ended:
            if kind == "websocket.close":
                return  # applications often close a WebSocket in `finally`, even if the client has closed it
            raise Disconnected(errno.EPIPE, "the WebSocket is closed")
        if kind == "websocket.accept" and self.accepted is None and not self.close_sent and self.denial is None:
            self.accepted = message
            self._resume()
            await self.wait_writable()
        elif kind == "websocket.send" and self._is_open:
            text = message.get("text")
            await self.send_message(cast("bytes", message["bytes"]) if text is None else cast("str", text))
        elif kind == "websocket.close" and not self.close_sent:
            self.close(message.get("code", 1000), message.get("reason") or "")
        elif kind == "websocket.http.response.start" and self.accepted is None and self.denial is None:
            if not 200 <= message["status"] <= 599:
                raise ValueError(f"invalid status {message['status']}: expected 200 to 599")
            self.denial = (message["status"], list(message.get("headers") or ()), b"")
        elif kind == "websocket.http.response.body" and self.denial is not None:
            status, headers, body = self.denial
            self.denial = (status, headers, body + message.get("body", b""))
            if not message.get("more_body", False):
                self._resume()
        else:
            raise RuntimeError(f"unexpected message {kind!r}")

    async def send_message(self, data: str | bytes) -> None:
        while True:
            result = self._send(data)
            if result == 0:
                await self._wait_step()  # ASGI requires that the message is passed to the kernel before the application continues
                return
            if result != -errno.EAGAIN:
                raise Disconnected(errno.EPIPE, "the WebSocket is closed")
            await self.wait_writable()

    def close(self, code: int, reason: str) -> None:
        if not self._is_open:
            self._resume()
        elif self._close(code, reason) == -errno.EINVAL:
            raise ValueError("invalid close code, or a reason of more than 123 bytes")
        self.close_sent = True


class Lifespan:
    """The startup and shutdown of an application: https://asgi.readthedocs.io, section Lifespan."""

    def __init__(self, app: Application, mode: str = "auto") -> None:
        self.app, self.mode = app, mode
        self.state: dict[str, Any] = {}
        self.messages: asyncio.Queue[Message] = asyncio.Queue()
        self.replies: asyncio.Queue[Message] = asyncio.Queue()
        self.task: asyncio.Future[None] | None = None

    async def startup(self) -> None:
        """Returns when the application is ready. Raises Error if it failed to start."""
        if self.mode == "off":
            return
        self.task = asyncio.ensure_future(self.run())
        await self.request("startup")

    async def shutdown(self) -> None:
        if self.task and not self.task.done():
            await self.request("shutdown")
            await self.task

    async def run(self) -> None:
        scope: Scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        try:
            await self.app(scope, self.messages.get, self.replies.put)
        except BaseException as problem:
            await self.replies.put({"type": "ended", "problem": problem})
        else:
            await self.replies.put({"type": "ended"})

    async def request(self, step: str) -> None:
        await self.messages.put({"type": f"lifespan.{step}"})
        reply = await self.replies.get()
        if reply["type"] == f"lifespan.{step}.failed":
            raise Error(f"the application failed at {step}: {reply.get('message', '')}")
        if reply["type"] == "ended" and "problem" in reply and (self.mode == "on" or step == "shutdown"):
            raise Error(f"the application failed at {step}") from reply["problem"]


def is_disconnect(problem: BaseException) -> bool:
    """Returns whether a framework has raised its own exception in response to Disconnected."""
    cause: BaseException | None = problem
    while cause and not isinstance(cause, Disconnected):
        cause = cause.__cause__ or cause.__context__
    return cause is not None and type(problem).__name__ in DISCONNECT_NAMES


def print_error(problem: BaseException) -> None:
    if is_disconnect(problem):
        return
    traceback.print_exception(type(problem), problem, problem.__traceback__)


class Host(_asgi.Host):
    """Runs an ASGI application in a server. Configure `server` before serve(): listen(), set(), read()."""

    def __init__(self, app: Application, root_path: str = "", lifespan: str = "auto",
                 on_log: Callable[[str, str], None] | None = None) -> None:
        self.app, self.root_path = app, root_path
        self.server = Server(on_log)
        self.lifespan_mode = lifespan
        self.tasks: set[asyncio.Task[None]] = set()

    async def serve(self, ready: Callable[[], None] | None = None) -> None:
        """Serves until the server stops. Calls ready() when the application has started."""
        loop = asyncio.get_running_loop()
        lifespan = Lifespan(self.app, self.lifespan_mode)
        await lifespan.startup()
        server = self.server
        server.set("PLUGINS", "Load", "websocket")
        if not server._is_configured("SERVER", "MaxBodySize"):
            server.set("SERVER", "MaxBodySize", "unlimited")  # ASGI applications and frameworks have their own limits
        server._check(lib.mk_server_set_default_type(server._use(), None))  # the application sets Content-Type itself
        server._handlers.append(self)  # keeps this host alive, because the library calls its handler
        # If the event loop has a task factory, the factory must create the tasks, so they cannot start within the handler.
        server._check(self._serve(server._use(), self.app, loop, self.root_path, lifespan.state, print_error, self.open_websocket,
                                 self.tasks, loop.get_task_factory() is None))
        serving = asyncio.ensure_future(server.serve(self._step))
        if ready:
            loop.call_soon(ready)
        try:
            await serving
            if self.tasks:  # background tasks may use the rest of the drain time
                await asyncio.wait(list(self.tasks), timeout=server._drain_left())
        finally:
            for task in list(self.tasks):
                task.cancel()
            if self.tasks:
                await asyncio.wait(list(self.tasks), timeout=5)
            await lifespan.shutdown()
            self._end()
            server.close()

    # ---- WebSocket ----

    def open_websocket(self, scope: Scope) -> WebSocket:
        loop = asyncio.get_running_loop()
        websocket = WebSocket(loop)
        websocket.task = loop.create_task(self.run(scope, websocket))
        self.tasks.add(websocket.task)
        return websocket

    async def run(self, scope: Scope, websocket: WebSocket) -> None:
        try:
            await self.app(scope, websocket.receive, websocket.send)
        except Disconnected:
            pass
        except Exception as problem:
            print_error(problem)
            if websocket._is_open and not websocket.close_sent:
                websocket.close(1011, "")
        finally:
            if websocket.task:
                self.tasks.discard(websocket.task)
            asyncio.get_running_loop().call_soon(self.after, websocket)

    @staticmethod
    def after(websocket: WebSocket) -> None:
        """Called when the application has returned: closes the WebSocket, or rejects the request if it was not accepted."""
        if websocket._is_open and not websocket.close_sent:
            websocket.close(1000, "")
        elif not websocket.has_ended and not websocket._is_open:
            websocket._resume()
