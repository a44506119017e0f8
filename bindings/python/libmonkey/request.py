# SPDX-License-Identifier: Apache-2.0
"""The arguments of handlers: a request and a response, valid until the request ends, and only in the thread that serves it."""
import asyncio
import ctypes
import errno
import mimetypes
import os
import threading

from .api import INT, LENGTH_UNKNOWN, UINT, Str, as_c, as_str, lib

READ_MAX = 64 * 1024


class Ended(Exception):
    """The request has ended: the client disconnected, or the response was sent."""


class Handle:
    """A pointer to an object of the library, which reuses the memory of the object after the request."""

    def __init__(self, pointer):
        self._pointer = pointer
        self._thread = threading.get_ident()

    def _use(self):
        if self._pointer is None:
            raise Ended("the request has ended")
        if threading.get_ident() != self._thread:
            raise RuntimeError("a request can be used only in the thread that serves it")
        return self._pointer


class Request(Handle):
    """A request. Its properties are strings; `content` is the request body, for routes with `content=True`."""

    def __init__(self, pointer):
        super().__init__(pointer)
        self._reading = None  # the future of an `await read()`
        self.content = b""

    def _text(self, function):
        return function(self._use()).text()

    method = property(lambda self: self._text(lib.mk_request_method_name), doc="GET, POST, ...")
    target = property(lambda self: self._text(lib.mk_request_target), doc="as the client sent it")
    path = property(lambda self: self._text(lib.mk_request_path), doc="decoded")
    query = property(lambda self: self._text(lib.mk_request_query) or "", doc="the part after the ?, not decoded")
    host = property(lambda self: self._text(lib.mk_request_host), doc="the host that the client requested")
    scheme = property(lambda self: self._text(lib.mk_request_scheme), doc="http or https")
    peer = property(lambda self: self._text(lib.mk_request_client_text), doc="the client's address")

    def header(self, name, otherwise=None):
        """Returns the value of a header; its name is case-insensitive."""
        text, _data = as_str(name)
        value = self._text(lambda pointer: lib.mk_request_header(pointer, text))
        return otherwise if value is None else value

    def param(self, name):
        """Returns a path parameter: an int for `<int>` and `<uint>`, otherwise a str; None if the route lacks it."""
        found = lib.mk_server_param(self._use(), as_c(name))
        if not found:
            return None
        param = found.contents
        return int(param.value.text()) if param.type in (INT, UINT) else param.value.text()

    def headers(self):
        """Returns all headers as (name, value) pairs."""
        name, value, found = Str(), Str(), []
        while lib.mk_request_header_at(self._use(), len(found), ctypes.byref(name), ctypes.byref(value)):
            found.append((name.text(), value.text()))
        return found

    # ---- Body ----

    def read_now(self):
        """Returns the next bytes of the body; b"" at its end, None if nothing has arrived yet."""
        buf = ctypes.create_string_buffer(READ_MAX)
        n = lib.mk_request_read(self._use(), buf, READ_MAX)
        if n == -errno.EAGAIN:
            return None
        if n < 0:
            raise OSError(-n, os.strerror(-n))
        return buf.raw[:n]

    async def read(self):
        """Waits in a coroutine for the next bytes of the body; returns b"" at its end."""
        pointer = self._use()
        self._reading = asyncio.get_running_loop().create_future()
        lib.mk_request_resume(pointer)  # the body can be read only inside a call to the handler: see _deliver_body()
        return await self._reading

    async def __aiter__(self):
        while data := await self.read():
            yield data

    def _deliver_body(self):
        """Called when the library calls the handler again while the handler's coroutine waits, possibly for the body."""
        if not self._reading or self._reading.done():
            return
        try:
            data = self.read_now()
        except OSError as error:
            self._reading.set_exception(error)
        else:
            if data is not None:
                self._reading.set_result(data)

    def _end(self):
        self._pointer = None
        if self._reading and not self._reading.done():
            self._reading.cancel()


class Response(Handle):
    """The response to a request. The handler returns or yields its body."""

    def __init__(self, pointer):
        super().__init__(pointer)
        self._has_type = False

    @staticmethod
    def _check(result):
        if result < 0:
            raise OSError(-result, os.strerror(-result))

    def set_status(self, status):
        """Sets the status, from 200 to 599; the default is 200."""
        self._check(lib.mk_response_set_status(self._use(), status))

    def _change_header(self, function, name, value):
        (n, name), (v, _value) = as_str(name), as_str(value)
        self._check(function(self._use(), n, v))
        self._has_type = self._has_type or name.lower() == b"content-type"

    def add(self, name, value):
        """Adds a header."""
        self._change_header(lib.mk_response_add_header, name, value)

    def set(self, name, value):
        """Sets a header, replacing all headers of the same name."""
        self._change_header(lib.mk_response_set_header, name, value)

    def send_file(self, path):
        """Sends a file as the body. Its name determines the media type unless Content-Type was set."""
        pointer = self._use()
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._check(lib.mk_response_set_body_file(pointer, fd, 0, os.fstat(fd).st_size))  # takes ownership of the descriptor
        self._default_type(mimetypes.guess_type(os.fspath(path))[0] or "application/octet-stream")

    def _default_type(self, media_type):
        if not self._has_type:
            self.set("Content-Type", media_type)

    def _set_content(self, content):
        text, _data = as_str(content)
        self._check(lib.mk_response_set_body(self._use(), text))

    def _set_source(self, ops, key):
        self._check(lib.mk_response_set_body_source(self._use(), ops, key, LENGTH_UNKNOWN))

    def _end(self):
        self._pointer = None
