# SPDX-License-Identifier: Apache-2.0
"""What handlers get: a request and a response, as long as the request lasts."""
import asyncio
import ctypes
import errno
import os

from .api import INT, LENGTH_UNKNOWN, UINT, Str, as_str, lib

READ_MAX = 64 * 1024


class Ended(Exception):
    """The client went away, or the request was over, before the handler was."""


class Request:
    """A request. Its properties are texts; `content` is what a route made with `content=True` has received."""

    def __init__(self, pointer):
        self._pointer = pointer
        self._reading = None  # the future of an `await read()`
        self.content = b""

    def _text(self, function):
        if self._pointer is None:
            raise Ended("the request is over")
        return function(self._pointer).text()

    method = property(lambda self: self._text(lib.mk_request_method_text), doc="GET, POST, ...")
    target = property(lambda self: self._text(lib.mk_request_target), doc="as the client sent it")
    path = property(lambda self: self._text(lib.mk_request_path), doc="decoded")
    query = property(lambda self: self._text(lib.mk_request_query) or "", doc="what follows the ?, not decoded")
    host = property(lambda self: self._text(lib.mk_request_host), doc="the name that the client asked for")
    scheme = property(lambda self: self._text(lib.mk_request_scheme), doc="http or https")
    peer = property(lambda self: self._text(lib.mk_request_peer), doc="the client's address")

    def field(self, name, otherwise=None):
        """The value of a field, whatever the case of its name."""
        text, _data = as_str(name)
        value = self._text(lambda pointer: lib.mk_request_field(pointer, text))
        return otherwise if value is None else value

    def param(self, name):
        """What a parameter of the route matched: a number for `<int>` and `<uint>`, else a text; None if it has none."""
        if self._pointer is None:
            raise Ended("the request is over")
        found = lib.mk_server_param(self._pointer, name.encode())
        if not found:
            return None
        param = found.contents
        return int(param.value.text()) if param.type in (INT, UINT) else param.value.text()

    def fields(self):
        """All field lines, as pairs."""
        name, value, found = Str(), Str(), []
        while lib.mk_request_field_at(self._pointer, len(found), ctypes.byref(name), ctypes.byref(value)):
            found.append((name.text(), value.text()))
        return found

    # ---- Content ----

    def read_now(self):
        """The next bytes of the content; b"" at its end, None when nothing has arrived yet."""
        if self._pointer is None:
            raise Ended("the request is over")
        room = ctypes.create_string_buffer(READ_MAX)
        n = lib.mk_request_read(self._pointer, room, READ_MAX)
        if n == -errno.EAGAIN:
            return None
        if n < 0:
            raise OSError(-n, os.strerror(-n))
        return room.raw[:n]

    async def read(self):
        """In a coroutine: waits for the next bytes of the content; b"" at its end."""
        if self._pointer is None:
            raise Ended("the request is over")
        self._reading = asyncio.get_running_loop().create_future()
        lib.mk_request_resume(self._pointer)  # content is read inside of a call of the handler: see _arrived()
        return await self._reading

    async def __aiter__(self):
        while data := await self.read():
            yield data

    def _arrived(self):
        """The handler was called while its coroutine waits: for content, perhaps."""
        if not self._reading or self._reading.done():
            return
        try:
            data = self.read_now()
        except OSError as problem:
            self._reading.set_exception(problem)
        else:
            if data is not None:
                self._reading.set_result(data)

    def _end(self):
        self._pointer = None
        if self._reading and not self._reading.done():
            self._reading.cancel()


class Response:
    """A response that is being made. What a handler returns or yields is its content."""

    def __init__(self, pointer):
        self._pointer = pointer

    @staticmethod
    def _check(result):
        if result < 0:
            raise OSError(-result, os.strerror(-result))

    def set_status(self, status):
        """From 200 to 599; 200 until it is set."""
        self._check(lib.mk_response_set_status(self._pointer, status))

    def add(self, name, value):
        """Adds a field line."""
        (n, _name), (v, _value) = as_str(name), as_str(value)
        self._check(lib.mk_response_add(self._pointer, n, v))

    def set(self, name, value):
        """Adds a field line in place of all others of that name."""
        (n, _name), (v, _value) = as_str(name), as_str(value)
        self._check(lib.mk_response_set(self._pointer, n, v))

    def send_file(self, path):
        """The content is that file."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._check(lib.mk_response_set_file(self._pointer, fd, 0, os.fstat(fd).st_size))  # it closes the descriptor

    def _set_content(self, content):
        text, _data = as_str(content)
        self._check(lib.mk_response_set_text(self._pointer, text))

    def _set_source(self, ops, key):
        self._check(lib.mk_response_set_source(self._pointer, ops, key, LENGTH_UNKNOWN))
