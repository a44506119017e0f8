# SPDX-License-Identifier: Apache-2.0
"""Streams response bodies from generators, which produce each piece when the client can receive it."""
import asyncio
import ctypes
import errno
import traceback

from .api import Close, Read, SourceOps, as_bytes, lib


class Source:
    """A generator, and the part of its last piece that has not been sent yet."""

    def __init__(self, pieces):
        self._pieces = pieces
        self._rest = b""

    def _next_piece(self):
        """Returns the next piece; b"" at the end, None if it is not available yet."""
        for piece in self._pieces:
            data = as_bytes(piece)
            if data:
                return data
        return b""

    def read(self, buf, cap):
        """Writes the next bytes to the server's buffer. Returns their number, or a negative errno value."""
        if not self._rest:
            self._rest = self._next_piece()
            if self._rest is None:
                self._rest = b""
                return -errno.EAGAIN
        piece, self._rest = self._rest[:cap], self._rest[cap:]
        ctypes.memmove(buf, piece, len(piece))
        return len(piece)

    def close(self):
        """Closes the generator, so that its `finally` runs now."""
        if hasattr(self._pieces, "close"):
            self._pieces.close()


class AsyncSource(Source):
    """Like Source, but for an asynchronous generator: a task waits for its next piece."""

    def __init__(self, pieces, request, loop):
        super().__init__(pieces)
        self._request, self._loop = request, loop
        self._task = None

    async def _await_piece(self):
        try:
            async for piece in self._pieces:
                data = as_bytes(piece)
                if data:
                    return data
            return b""
        finally:
            if self._request._pointer is not None:
                lib.mk_request_resume(self._request._pointer)

    def _next_piece(self):
        if self._task is None:
            self._task = self._loop.create_task(self._await_piece())
        if not self._task.done():
            return None
        task, self._task = self._task, None
        return task.result()

    def close(self):
        if self._task:
            self._task.cancel()
        if not self._loop.is_closed():
            self._loop.create_task(self._finish())

    async def _finish(self):
        if self._task:
            await asyncio.wait([self._task])
        await self._pieces.aclose()


class Sources:
    """The open sources of a server, keyed by the number that the library passes to callbacks."""

    def __init__(self, active_calls):
        self._open, self._last, self._active_calls = {}, 0, active_calls
        self._ops = SourceOps(Read(self._read), Close(self._close))

    def begin(self, response, source):
        """Streams the response body from this source."""
        self._last += 1
        key = self._last
        self._open[key] = source
        response._set_source(ctypes.byref(self._ops), key)

    def _read(self, key, buf, cap):
        try:
            with self._active_calls:
                return self._open[key].read(buf, cap)
        except BaseException:  # exceptions must not propagate into C
            traceback.print_exc()
            return -errno.EIO

    def _close(self, key):
        try:
            with self._active_calls:
                self._open.pop(key).close()
        except BaseException:
            traceback.print_exc()
