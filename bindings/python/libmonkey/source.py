# SPDX-License-Identifier: Apache-2.0
"""Streams response bodies from generators, which produce each piece when the client can receive it."""
from __future__ import annotations

import asyncio
import ctypes
import errno
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

from .api import Close, Read, SourceOps, as_bytes, lib

if TYPE_CHECKING:
    from .request import Request, Response
    from .server import Server

Encode = Callable[[Any], bytes]


class Source:
    """A generator, and the part of its last piece that has not been sent yet."""

    def __init__(self, pieces: Iterator[Any], encode: Encode = as_bytes) -> None:
        self._pieces: Any = pieces
        self._encode = encode
        self._rest = b""

    def _next_piece(self) -> bytes | None:
        """Returns the next piece, b"" at the end of the body, or None if the next piece is not available yet."""
        for piece in self._pieces:
            data = self._encode(piece)
            if data:
                return data
        return b""

    def read(self, buf: int, cap: int) -> int:
        """Writes the next bytes to the server's buffer. Returns their number, or a negative errno value."""
        if not self._rest:
            next_piece = self._next_piece()
            if next_piece is None:
                return -errno.EAGAIN
            self._rest = next_piece
        piece, self._rest = self._rest[:cap], self._rest[cap:]
        ctypes.memmove(buf, piece, len(piece))
        return len(piece)

    def close(self) -> None:
        """Closes the generator, so that its `finally` runs now."""
        if hasattr(self._pieces, "close"):
            self._pieces.close()


class AsyncSource(Source):
    """Like Source, but for an asynchronous generator: a task waits for its next piece."""

    def __init__(self, pieces: AsyncIterator[Any], request: Request, loop: asyncio.AbstractEventLoop, encode: Encode = as_bytes) -> None:
        super().__init__(iter(()), encode)
        self._pieces = pieces
        self._request, self._loop = request, loop
        self._task: asyncio.Task[bytes] | None = None

    async def _await_piece(self) -> bytes:
        try:
            async for piece in self._pieces:
                data = self._encode(piece)
                if data:
                    return data
            return b""
        finally:
            if self._request._pointer is not None:
                lib.mk_request_resume(self._request._pointer)

    def _next_piece(self) -> bytes | None:
        if self._task is None:
            self._task = self._loop.create_task(self._await_piece())
        if not self._task.done():
            return None
        task, self._task = self._task, None
        return task.result()

    def close(self) -> None:
        if self._task:
            self._task.cancel()
        if not self._loop.is_closed():
            self._loop.create_task(self._finish())

    async def _finish(self) -> None:
        if self._task:
            await asyncio.wait([self._task])
        await self._pieces.aclose()


class Sources:
    """The open sources of a server, keyed by the number that the library passes to callbacks."""

    def __init__(self, server: Server) -> None:
        self._open: dict[int, Source] = {}
        self._last, self._server = 0, server
        self._ops = SourceOps(Read(self._read), Close(self._close))

    def begin(self, response: Response, source: Source) -> None:
        """Streams the response body from this source."""
        self._last += 1
        key = self._last
        self._open[key] = source
        response._set_source(ctypes.byref(self._ops), key)

    def _read(self, key: int, buf: int, cap: int) -> int:
        try:
            with self._server._active_calls:
                return self._open[key].read(buf, cap)
        except BaseException as problem:  # exceptions must not propagate into C
            self._server._report(problem)
            return -errno.EIO

    def _close(self, key: int) -> None:
        try:
            with self._server._active_calls:
                self._open.pop(key).close()
        except BaseException as problem:
            self._server._report(problem)
