# SPDX-License-Identifier: Apache-2.0
"""The arguments of handlers: a request and a response, valid until the request ends, and only in the thread that serves it."""
from __future__ import annotations

import asyncio
import ctypes
import errno
import mimetypes
import os
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, Union

from .api import INT, LENGTH_UNKNOWN, UINT, Str, as_c, as_str, lib

READ_MAX = 64 * 1024
Text = Union[str, bytes, bytearray, memoryview]


class Ended(Exception):
    """The request has ended: the client disconnected, or the response was sent."""


class Handle:
    """A pointer to an object of the library. It is None after the request, because the library then reuses the object's memory."""

    def __init__(self, pointer: int) -> None:
        self._pointer: int | None = pointer
        self._thread = threading.get_ident()

    def _use(self) -> int:
        if self._pointer is None:
            raise Ended("the request has ended")
        if threading.get_ident() != self._thread:
            raise RuntimeError("a request can be used only in the thread that serves it")
        return self._pointer


class Request(Handle):
    """A request. Its properties are strings; `content` is the request body, for routes with `content=True`."""

    def __init__(self, pointer: int) -> None:
        super().__init__(pointer)
        self._reading: asyncio.Future[bytes] | None = None  # the future of an `await read()`
        self._deferred: Deferred | None = None
        self.content = b""

    def _text(self, function: Callable[[int], Str]) -> str | None:
        return function(self._use()).text()

    def _present(self, function: Callable[[int], Str]) -> str:
        return self._text(function) or ""

    @property
    def method(self) -> str:
        """GET, POST, ..."""
        return self._present(lib.mk_request_method_name)

    @property
    def target(self) -> str:
        """as the client sent it"""
        return self._present(lib.mk_request_target)

    @property
    def path(self) -> str:
        """decoded"""
        return self._present(lib.mk_request_path)

    @property
    def query(self) -> str:
        """the part after the ?, not decoded"""
        return self._present(lib.mk_request_query)

    @property
    def host(self) -> str | None:
        """the host that the client requested"""
        return self._text(lib.mk_request_host)

    @property
    def scheme(self) -> str:
        """http or https"""
        return self._present(lib.mk_request_scheme)

    @property
    def peer(self) -> str:
        """the client's address"""
        return self._present(lib.mk_request_client_text)

    @property
    def version(self) -> str:
        """the HTTP version: 1.0, 1.1 or 2"""
        number = lib.mk_request_version(self._use())
        return f"{number // 10}.{number % 10}" if number < 20 else str(number // 10)

    def cookie(self, name: str) -> str | None:
        """Returns the value of a cookie, or None."""
        return self._text(lambda pointer: lib.mk_request_cookie_view(pointer, as_c(name)))

    def header(self, name: str, otherwise: str | None = None) -> str | None:
        """Returns the value of a header; its name is case-insensitive."""
        text, _data = as_str(name)
        value = self._text(lambda pointer: lib.mk_request_header(pointer, text))
        return otherwise if value is None else value

    def param(self, name: str) -> str | int | None:
        """Returns a path parameter: an int for `<int>` and `<uint>`, otherwise a str; None if the route has no such parameter."""
        found = lib.mk_server_param(self._use(), as_c(name))
        if not found:
            return None
        param = found.contents
        text: str = param.value.text() or ""
        return int(text) if param.type in (INT, UINT) else text

    def _fields(self, function: Callable[..., bool]) -> list[tuple[str, str]]:
        name, value = Str(), Str()
        found: list[tuple[str, str]] = []
        while function(self._use(), len(found), ctypes.byref(name), ctypes.byref(value)):
            found.append((name.text() or "", value.text() or ""))
        return found

    def headers(self) -> list[tuple[str, str]]:
        """Returns all headers as (name, value) pairs."""
        return self._fields(lib.mk_request_header_at)

    def trailers(self) -> list[tuple[str, str]]:
        """Returns all trailers as (name, value) pairs, once the whole body has been read."""
        return self._fields(lib.mk_request_trailer_at)

    # ---- Body ----

    def read_now(self) -> bytes | None:
        """Returns the next bytes of the body; b"" at its end, None if nothing has arrived yet."""
        buf = ctypes.create_string_buffer(READ_MAX)
        n = lib.mk_request_read(self._use(), buf, READ_MAX)
        if n == -errno.EAGAIN:
            return None
        if n < 0:
            raise OSError(-n, os.strerror(-n))
        return buf.raw[:n]

    async def read(self) -> bytes:
        """Waits in a coroutine for the next bytes of the body; returns b"" at its end."""
        pointer = self._use()
        self._reading = asyncio.get_running_loop().create_future()
        lib.mk_request_resume(pointer)  # the body can be read only inside a call to the handler: see _deliver_body()
        return await self._reading

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self.read():
            yield data

    def _deliver_body(self) -> None:
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

    def _end(self) -> None:
        self._pointer = None
        if self._reading and not self._reading.done():
            self._reading.cancel()
        if self._deferred:
            self._deferred._end()

    # ---- Responding later ----

    def defer(self) -> Deferred:
        """Returns an object that responds to the request later, from any thread. The handler has to return it."""
        if not self._deferred:
            self._deferred = Deferred(self._use())
        return self._deferred


class Deferred:
    """Responds to a request after its handler has returned, from any thread:

        @server.route("GET /report")
        def report(request, response):
            deferred = request.defer()
            executor.submit(lambda: deferred.respond(make_report()))
            return deferred
    """

    def __init__(self, pointer: int) -> None:
        self._lock = threading.Lock()
        self._ref: int | None = lib.mk_request_ref_new(pointer)
        if not self._ref:
            raise MemoryError
        self._result: tuple[Any, BaseException | None] | None = None

    @property
    def has_ended(self) -> bool:
        """Has the request ended, for example because the client has disconnected? If not, it may end at any moment."""
        with self._lock:
            return self._ref is None or lib.mk_request_ref_is_gone(self._ref)

    def respond(self, result: Any) -> None:
        """Responds with anything that a handler may return. Raises Ended if the request has ended, and RuntimeError if there is a
        response already."""
        self._set(result, None)

    def fail(self, problem: BaseException) -> None:
        """Prints the exception and sends a 500 to the client, as if the handler had raised it."""
        self._set(None, problem)

    def _set(self, result: Any, problem: BaseException | None) -> None:
        with self._lock:
            if self._ref is None:
                raise Ended("the request has ended")
            if self._result:
                raise RuntimeError("there is a response already")
            self._result = (result, problem)
            if lib.mk_request_ref_resume(self._ref, None, None) < 0:
                raise Ended("the request has ended")

    def _take(self) -> Any:
        assert self._result
        result, problem = self._result
        if problem:
            raise problem
        return result

    def _end(self) -> None:
        with self._lock:
            ref, self._ref = self._ref, None
        lib.mk_request_ref_free(ref)


class Response(Handle):
    """The response to a request. The handler returns or yields its body."""

    def __init__(self, pointer: int) -> None:
        super().__init__(pointer)
        self._has_type = False

    @staticmethod
    def _check(result: int) -> None:
        if result < 0:
            raise OSError(-result, os.strerror(-result))

    def set_status(self, status: int) -> None:
        """Sets the status, from 200 to 599; the default is 200."""
        self._check(lib.mk_response_set_status(self._use(), status))

    def _change_header(self, function: Callable[[int, Str, Str], int], name: Text, value: Text) -> None:
        (n, name_data), (v, _value) = as_str(name), as_str(value)
        self._check(function(self._use(), n, v))
        self._has_type = self._has_type or name_data.lower() == b"content-type"

    def add(self, name: Text, value: Text) -> None:
        """Adds a header."""
        self._change_header(lib.mk_response_add_header, name, value)

    def set(self, name: Text, value: Text) -> None:
        """Sets a header, replacing all headers of the same name."""
        self._change_header(lib.mk_response_set_header, name, value)

    def remove(self, name: Text) -> None:
        """Removes all headers with this name."""
        text, name_data = as_str(name)
        self._check(lib.mk_response_remove_header(self._use(), text))
        self._has_type = self._has_type and name_data.lower() != b"content-type"

    def add_trailer(self, name: Text, value: Text) -> None:
        """Adds a trailer, a header after the body. A generator may add trailers until it ends. Trailers are sent only if the client
        accepts them and the length of the body is not known in advance."""
        (n, _name), (v, _value) = as_str(name), as_str(value)
        self._check(lib.mk_response_add_trailer(self._use(), n, v))

    def send_file(self, path: str | os.PathLike[str]) -> None:
        """Sends a file as the body. Its name determines the media type unless Content-Type was set."""
        pointer = self._use()
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._check(lib.mk_response_set_body_file(pointer, fd, 0, os.fstat(fd).st_size))  # takes ownership of the descriptor
        self._default_type(mimetypes.guess_type(os.fspath(path))[0] or "application/octet-stream")

    def _default_type(self, media_type: str) -> None:
        if not self._has_type:
            self.set("Content-Type", media_type)

    def _set_content(self, content: Text) -> None:
        text, _data = as_str(content)
        self._check(lib.mk_response_set_body(self._use(), text))

    def _set_source(self, ops: Any, key: int) -> None:
        self._check(lib.mk_response_set_body_source(self._use(), ops, key, LENGTH_UNKNOWN))

    def _end(self) -> None:
        self._pointer = None
