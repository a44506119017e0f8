# SPDX-License-Identifier: Apache-2.0
"""The WebSockets that handlers of `@server.websocket()` use."""
from __future__ import annotations

import asyncio
import collections
import ctypes
import errno
import inspect
import traceback
from collections.abc import AsyncIterator, Callable
from ctypes import byref, c_void_p
from typing import TYPE_CHECKING, Any, Union

from .api import (DONE, REFUSE, Str, WebSocketClose, WebSocketMessage, WebSocketOps, WebSocketOptions, WebSocketPong, WebSocketWritable,
                  as_c, as_str, lib)
from .request import Ended, Handle, Request

if TYPE_CHECKING:
    from .server import Server

TEXT, BINARY = 1, 2
QUEUED_MAX = 1024 * 1024  # reading from a WebSocket pauses when the messages that wait for receive() total this many bytes
INTERNAL_ERROR = 1011

Data = Union[str, bytes]


def count_bytes(data: Data) -> int:
    """Returns the size of a message in bytes; text is encoded in UTF-8."""
    return len(data) if isinstance(data, bytes) or data.isascii() else len(data.encode())


class WebSocket(Handle):
    """A WebSocket. Use it only in the thread that serves it: in its callbacks, or in the event loop of `await server.serve()`.

    Without asyncio, the handler sets `on_message(data)` and, if needed, `on_writable()`, `on_pong(data)` and `on_close(code, reason)`.
    A coroutine receives messages with `async for data in socket`. Text is str, binary data is bytes.
    """

    def __init__(self, pointer: int, request: Request) -> None:
        super().__init__(pointer)
        self.request = request  # the request that opened the WebSocket; valid while it is open
        self.on_message: Callable[[Data], object] | None = None
        self.on_writable: Callable[[], object] | None = None
        self.on_close: Callable[[int, str], object] | None = None
        self.on_pong: Callable[[bytes], object] | None = None
        self.close_code: int | None = None  # set when the WebSocket is closed
        self.close_reason = ""
        self._received: collections.deque[Data] = collections.deque()
        self._size = 0
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_paused = self._is_full = False

    # ---- For the program ----

    def send(self, data: Data) -> None:
        """Sends a message: text if it is a str. Raises BlockingIOError if too much is queued already: try again in on_writable(), or
        after `await drain()`. Raises Ended if the WebSocket is closed."""
        text, _data = as_str(data)
        result = lib.mk_websocket_send(self._use(), TEXT if isinstance(data, str) else BINARY, text)
        self._is_full = result == -errno.EAGAIN
        if self._is_full:
            raise BlockingIOError(errno.EAGAIN, "the client receives too slowly")
        if result < 0:
            raise Ended("the WebSocket is closed")

    async def drain(self) -> None:
        """After send() has raised BlockingIOError: waits in a coroutine until send() accepts another message."""
        if self._is_full and self._pointer is not None:
            self._writer = asyncio.get_running_loop().create_future()
            await self._writer

    async def send_when_writable(self, data: Data) -> None:
        """Sends a message. If too much is queued already, first waits in a coroutine until send() accepts the message."""
        while True:
            try:
                return self.send(data)
            except BlockingIOError:
                await self.drain()

    async def receive(self) -> Data:
        """Waits in a coroutine for the next message. Raises Ended if the WebSocket is closed."""
        while not self._received:
            if self._pointer is None:
                raise Ended("the WebSocket is closed")
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        data = self._received.popleft()
        self._size -= count_bytes(data)
        if self._is_paused and self._size < QUEUED_MAX // 2 and self._pointer is not None:
            self._is_paused = False
            lib.mk_websocket_resume(self._pointer)
        return data

    async def __aiter__(self) -> AsyncIterator[Data]:
        """Yields messages until the WebSocket is closed."""
        while True:
            try:
                data = await self.receive()
            except Ended:
                return
            yield data

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Sends the queued messages, then closes the WebSocket. Does nothing if the WebSocket is already closed."""
        if self._pointer is None:
            return
        text, _data = as_str(reason)
        if lib.mk_websocket_close(self._use(), code, text) == -errno.EINVAL:
            raise ValueError("invalid close code, or a reason of more than 123 bytes")

    @property
    def subprotocol(self) -> str | None:
        """the negotiated subprotocol, or None"""
        text: str | None = lib.mk_websocket_subprotocol(self._use()).text()
        return text

    def ping(self, data: str | bytes = b"") -> None:
        """Sends a ping with up to 125 bytes of data; on_pong(data) is called when the pong arrives. Raises Ended if the WebSocket is
        closed."""
        text, _data = as_str(data)
        result = lib.mk_websocket_ping(self._use(), text)
        if result == -errno.EINVAL:
            raise ValueError("a ping may have up to 125 bytes")
        if result < 0:
            raise Ended("the WebSocket is closed")

    def abort(self) -> None:
        """Closes the connection at once, without the closing handshake. Does nothing if the WebSocket is already closed."""
        if self._pointer is not None:
            lib.mk_websocket_abort(self._use())

    # ---- Called by the library ----

    def _deliver(self, data: Data) -> None:
        if self.on_message:
            self.on_message(data)
            return
        self._received.append(data)
        self._size += count_bytes(data)
        _wake(self._reader)
        if self._size >= QUEUED_MAX and self._pointer is not None:
            self._is_paused = True
            lib.mk_websocket_pause(self._pointer)

    def _become_writable(self) -> None:
        self._is_full = False
        _wake(self._writer)
        if self.on_writable:
            self.on_writable()

    def _receive_pong(self, data: bytes) -> None:
        if self.on_pong:
            self.on_pong(data)

    def _end(self, code: int, reason: str) -> None:
        self._pointer = None
        self.close_code, self.close_reason = code, reason
        self.request._end()
        _wake(self._reader)
        _wake(self._writer)
        if self.on_close:
            self.on_close(code, reason)


def _wake(future: asyncio.Future[None] | None) -> None:
    if future and not future.done():
        future.set_result(None)


class WebSockets:
    """The open WebSockets of a server, keyed by the number that the library passes to callbacks."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._open: dict[int, WebSocket] = {}
        self._last = 0
        self._ops = WebSocketOps(WebSocketMessage(self._on_message), WebSocketWritable(self._on_writable), WebSocketPong(self._on_pong),
                                 WebSocketClose(self._on_close))

    def options(self, subprotocols: str | None, origins: str | None, message_max: int) -> WebSocketOptions:
        return WebSocketOptions(ops=ctypes.pointer(self._ops), subprotocols=subprotocols and as_c(subprotocols),
                                origins=origins and as_c(origins), message_max=message_max, flags=1)

    def open(self, function: Callable[[WebSocket], Any], options: WebSocketOptions, request: int, response: int) -> int:
        """Opens the WebSocket that a client requests, and calls the handler. Returns the verdict."""
        self._last += 1
        key, pointer = self._last, c_void_p()
        if lib.mk_websocket_open(request, response, byref(options), key, byref(pointer)) < 0:
            return REFUSE
        assert pointer.value
        socket = self._open[key] = WebSocket(pointer.value, Request(request))
        self._run(socket, lambda: self._begin(socket, function))
        return DONE

    def _begin(self, socket: WebSocket, function: Callable[[WebSocket], Any]) -> None:
        result = function(socket)
        if not inspect.iscoroutine(result):
            return
        loop = self._server._loop
        if not loop:
            result.close()
            raise RuntimeError("coroutines work only in `await server.serve()`")
        socket._task = loop.create_task(self._finish(socket, result))

    @staticmethod
    async def _finish(socket: WebSocket, coroutine: Any) -> None:
        """Runs the coroutine of a WebSocket, and then closes the WebSocket."""
        try:
            await coroutine
        except Ended:
            pass
        except Exception:
            traceback.print_exc()
            socket.close(INTERNAL_ERROR)
        finally:
            socket.close()

    def _run(self, socket: WebSocket, call: Callable[[], object]) -> None:
        """Calls `call`. An exception closes the WebSocket, because it must not propagate into C."""
        try:
            with self._server._active_calls:
                call()
        except BaseException as problem:
            self._server._report(problem)
            socket.close(INTERNAL_ERROR)

    def _on_message(self, key: int, _socket: int, kind: int, data: Str) -> None:
        content = data.bytes() or b""
        socket = self._open[key]
        self._run(socket, lambda: socket._deliver(content.decode() if kind == TEXT else content))

    def _on_writable(self, key: int, _socket: int) -> None:
        socket = self._open[key]
        self._run(socket, socket._become_writable)

    def _on_pong(self, key: int, _socket: int, data: Str) -> None:
        content = data.bytes() or b""
        socket = self._open[key]
        self._run(socket, lambda: socket._receive_pong(content))

    def _on_close(self, key: int, _socket: int, code: int, reason: Str) -> None:
        socket = self._open.pop(key)
        self._run(socket, lambda: socket._end(code, (reason.bytes() or b"").decode("utf-8", "replace")))
