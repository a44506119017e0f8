# SPDX-License-Identifier: Apache-2.0
"""A server: configured by method calls, then run in the calling thread, in its own threads, or in the asyncio event loop."""
from __future__ import annotations

import asyncio
import atexit
import collections.abc
import ctypes
import inspect
import json
import os
import select
import socket as sockets
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .api import DONE, REFUSE, WAIT, Accepts, Close, Handler, Log, MemoryFile, Options, Str, as_bytes, as_c, as_str, lib
from .events import encode_event
from .request import Deferred, Request, Response
from .source import AsyncSource, Source, Sources
from .websocket import WebSocket, WebSockets

LEVELS = ("error", "warn", "info", "debug")
ADDRESS_MAX = 192  # maximum size of an address as text, in bytes
POLL_MS = 1000  # maximum time until run() notices a signal that arrived just before it started to wait
TEXT, BYTES, JSON = "text/plain; charset=utf-8", "application/octet-stream", "application/json"
EVENTS = "text/event-stream"

Function = TypeVar("Function", bound=Callable[..., Any])

# Keeps running servers alive: the library calls their callbacks even if the program has dropped all references to them.
running: set[Server] = set()


@atexit.register
def _close_running() -> None:
    for server in list(running):
        try:
            server.close()
        except RuntimeError:  # the server runs in the event loop of another thread
            server.stop(0)


class ActiveCalls(threading.local):
    """Counts the library calls and callbacks that are active in this thread; the server must not be freed during any of them."""

    callbacks = 0  # active calls to handlers, generators and on_log
    calls = 0  # active calls to run() and wait()

    def __enter__(self) -> None:
        self.callbacks += 1

    def __exit__(self, *_exception: object) -> None:
        self.callbacks -= 1


class Error(Exception):
    """The server rejected a setting or could not start; the message says why."""


class Exchange:
    """A request and its response, kept while the handler waits for the body, runs as a coroutine, or has deferred the response."""

    def __init__(self, request: Request, response: Response) -> None:
        self.request, self.response = request, response
        self.task: asyncio.Task[Any] | None = None
        self.deferred: Deferred | None = None
        self.parts: list[bytes] = []

    def end(self) -> None:
        """Called when the request has ended."""
        self.response._end()
        self.request._end()
        if self.task:
            self.task.cancel()


class Route:
    """A handler and its options."""

    def __init__(self, function: Callable[..., Any], content: bool, events: bool) -> None:
        self.function, self.content, self.events = function, content, events


class Server:
    """A server. `on_log(level, text)` receives its log messages; without it, they are discarded."""

    def __init__(self, on_log: Callable[[str, str], object] | None = None) -> None:
        self._active_calls = ActiveCalls()
        self._log = Log(self._log_callback(on_log)) if on_log else Log()
        options = Options(ctypes.sizeof(Options), self._log, None)
        self._pointer: int | None = lib.mk_server_new(ctypes.byref(options))
        if not self._pointer:
            raise MemoryError
        self._configured: set[tuple[str, str]] | None = set()  # keys set so far; None: unknown, because a file was read
        self._drain_end = 0.0  # monotonic time at which the server closes open connections; 0: stop() was not called
        self._handlers: list[object] = []  # keeps the callbacks alive, because the library calls them
        self._waiting: dict[int, Exchange] = {}  # request pointer -> Exchange
        self._end = Close(self._on_end)
        self._sources = Sources(self)
        self._websockets: WebSockets | None = None
        self._interruption: BaseException | None = None  # KeyboardInterrupt or SystemExit, raised in a callback
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Future[int] | None = None  # the future that serve() awaits
        self._watched: int | None = None  # the descriptor that the event loop watches
        self._loop_thread: int | None = None
        self._is_stepping = False  # run() or serve() is active
        self._users = 0  # number of active calls to run() and wait()
        self._changed = threading.Condition(threading.RLock())  # protects the pointer from close() in another thread

    def _log_callback(self, on_log: Callable[[str, str], object]) -> Callable[[int, int, Str], None]:
        def log(_ctx: int, level: int, text: Str) -> None:
            try:
                with self._active_calls:
                    on_log(LEVELS[level], text.text() or "")
            except BaseException as problem:  # exceptions must not propagate into C
                self._report(problem)
        return log

    def _report(self, problem: BaseException) -> None:
        """Prints the exception of a callback. run() and serve() raise KeyboardInterrupt and SystemExit instead."""
        if isinstance(problem, (KeyboardInterrupt, SystemExit)) and (self._active_calls.calls or self._loop_thread == threading.get_ident()):
            self._interruption = problem
        else:
            traceback.print_exception(type(problem), problem, problem.__traceback__)

    def _raise_interruption(self) -> None:
        problem, self._interruption = self._interruption, None
        if problem:
            raise problem

    def _check(self, result: int) -> int:
        if result < 0:
            raise Error(lib.mk_server_error(self._pointer).decode())
        return result

    def _use(self) -> int:
        if self._pointer is None:
            raise Error("the server was closed")
        return self._pointer

    # ---- Configuration ----

    def _call_library(self, function: Callable[..., int], *arguments: Any) -> int:
        """Calls a library function, during which another thread cannot close() the server."""
        with self._changed:
            return self._check(function(self._use(), *arguments))

    def read(self, path: str | os.PathLike[str]) -> None:
        """Reads a configuration file, or the monkey.conf of a folder."""
        self._call_library(lib.mk_server_load_config, as_c(str(path)))
        self._configured = None

    def set(self, section: str, key: str, value: object) -> None:
        """Sets a configuration key: server.set("SERVER", "KeepAliveTimeout", "5s")."""
        self._call_library(lib.mk_server_set, as_c(section), as_c(key), as_c(str(value)))
        if self._configured is not None:
            self._configured.add((section.lower(), key.lower()))

    def _is_configured(self, section: str, key: str) -> bool:
        """Returns whether the key was set, or may have been set by a configuration file."""
        return self._configured is None or (section.lower(), key.lower()) in self._configured

    def add_section(self, section: str) -> None:
        """Starts another section with this name, to which the following calls of set() apply."""
        self._call_library(lib.mk_server_add_section, as_c(section))

    def add_host(self, names: str | None = None, root: str | os.PathLike[str] | None = None) -> None:
        """Adds a virtual host with these names, separated by spaces, and this document root."""
        self._call_library(lib.mk_server_add_vhost, names and as_c(names), root and as_c(str(root)))

    def add_certificate(self, certificate: str | bytes, key: str | bytes | None = None) -> None:
        """Adds a certificate to the host that was added last, or to all hosts if none was added. Both arguments are PEM text, not
        file names; without `key`, the text of the certificate must contain its key."""
        self._call_library(lib.mk_server_add_certificate, as_c(certificate), key and as_c(key))

    def add_files(self, files: Mapping[str, str | bytes]) -> None:
        """Serves files from memory. `files` maps URL paths, such as "/app.js", to contents."""
        contents = [as_str(content) for content in files.values()]
        entries = (MemoryFile * len(files))(*(MemoryFile(path=as_c(path), content=text) for path, (text, _) in zip(files, contents)))
        self._handlers.append((entries, contents))  # the library does not copy the contents
        self._call_library(lib.mk_server_add_files, entries, len(files), ctypes.sizeof(MemoryFile))

    def set_accept_filter(self, accepts: Callable[[str], object]) -> None:
        """Sets a function that accepts or rejects connections, before TLS and HTTP: accepts(address) returns whether to serve the
        client. It must not block. If it raises an exception, the connection is rejected."""
        def filter_client(addr: Any, _ctx: int) -> bool:
            try:
                with self._active_calls:
                    return bool(accepts(addr.contents.text()))
            except BaseException as problem:  # exceptions must not propagate into C
                self._report(problem)
                return False

        callback = Accepts(filter_client)
        self._handlers.append(callback)
        self._call_library(lib.mk_server_set_accept_filter, callback, None)

    # ---- Listeners and certificates: for use at any time, and from any thread ----

    def listen(self, where: str = "127.0.0.1:0", tls: bool = False) -> int:
        """Listens on an address, and returns the port."""
        port = ctypes.c_uint()
        self._call_library(lib.mk_server_listen, as_c(f"{where} tls" if tls else where), ctypes.byref(port))
        return port.value

    def listen_socket(self, socket: sockets.socket, tls: bool = False) -> None:
        """Listens on a bound socket; the caller keeps ownership of it."""
        self._call_library(lib.mk_server_listen_fd, socket.fileno(), tls)

    def unlisten(self, where: str) -> None:
        """Closes a listener of the running server. `where` is an address as for listen(), or one of addresses(). Open connections
        stay open."""
        self._call_library(lib.mk_server_unlisten, as_c(where))

    def addresses(self) -> list[str]:
        """Returns the addresses of the listeners, with their ports, once the server has started."""
        found: list[str] = []
        buf = ctypes.create_string_buffer(ADDRESS_MAX)
        with self._changed:
            while lib.mk_server_address(self._use(), len(found), buf, ADDRESS_MAX) == 0:
                found.append(buf.value.decode())
        return found

    def listener_sockets(self) -> list[sockets.socket]:
        """Returns duplicates of all listening sockets, once the server has started. Pass all of them to a successor process, which
        calls listen_socket() for each of them before it starts; then stop this server. No connection is refused meanwhile."""
        found: list[sockets.socket] = []
        with self._changed:
            for i in range(len(self.addresses())):
                n = 0
                while (fd := lib.mk_server_listener_fd(self._use(), i, n)) >= 0:
                    found.append(sockets.socket(fileno=fd))
                    n += 1
        return found

    def replace_certificate(self, certificate: str | bytes, key: str | bytes | None = None, name: str | None = None) -> None:
        """Replaces the certificate of the host with this name, or of all hosts that have a certificate, while the server is running.
        `certificate` and `key` are as for add_certificate()."""
        self._call_library(lib.mk_server_replace_certificate, name and as_c(name), as_c(certificate), key and as_c(key))

    def pause_accepting(self) -> None:
        """Stops accepting connections, for example while a database is overloaded: new ones wait in the kernel's queue."""
        self._call_library(lib.mk_server_pause_accepting)

    def resume_accepting(self) -> None:
        """Accepts connections again."""
        self._call_library(lib.mk_server_resume_accepting)

    def route(self, what: str, content: bool = False, events: bool = False) -> Callable[[Function], Function]:
        """Decorates a handler: `@server.route("GET /users/:id<int>")`.

        The handler is called with a request and a response, which are valid until the request ends. The return value determines the
        response:

        - str or bytes; a dict or a list is sent as JSON
        - an iterator or a generator of str or bytes, which produces the next piece when the client can receive it
        - an int: a status, sent with its error page if it is 400 or above; None: an empty body
        - a tuple (content, status) or (content, status, headers), where headers is a dict
        - the result of `request.defer()`: the response follows later, from any thread

        Anything else raises TypeError, and the client gets a 500. With `content=True`, the handler is called when the whole
        request body has arrived. With `serve()`, the handler may be a coroutine or an asynchronous generator. With `events=True`,
        the iterator or generator yields server-sent events: each item is an Event, or the data of one.
        """
        def decorate(function: Function) -> Function:
            callback = Handler(self._handler_callback(Route(function, content, events)))
            self._call_library(lib.mk_server_add_route, as_c(what), callback, None)
            self._handlers.append(callback)
            return function
        return decorate

    def websocket(self, what: str, subprotocols: str | None = None, origins: str | None = None,
                  message_max: int = 0) -> Callable[[Callable[[WebSocket], Any]], Callable[[WebSocket], Any]]:
        """Decorates a WebSocket handler: `@server.websocket("/chat")`.

        The handler is called with each WebSocket that a client opens. With `serve()`, it may be a coroutine; the WebSocket is closed
        when the coroutine returns. `subprotocols` are separated by commas, `origins` by spaces (see <monkey/websocket.h>). Without
        `origins`, the pages of all origins may connect. A message of more than `message_max` bytes (default: 1 MB) closes the WebSocket.
        """
        if not self._websockets:
            self.set("PLUGINS", "Load", "websocket")
            self._websockets = WebSockets(self)
        open_websockets = self._websockets

        def decorate(function: Callable[[WebSocket], Any]) -> Callable[[WebSocket], Any]:
            options = open_websockets.options(subprotocols, origins, message_max)

            def handle(request: int, response: int, _data: int) -> int:
                try:
                    return open_websockets.open(function, options, request, response)
                except BaseException as problem:
                    self._report(problem)
                    lib.mk_response_set_status(response, 500)
                    return REFUSE

            callback = Handler(handle)
            self._call_library(lib.mk_server_add_route, as_c(what), callback, None)
            self._handlers.append((callback, options))
            return function
        return decorate

    # ---- Handling requests ----

    def _handler_callback(self, route: Route) -> Callable[[int, int, int], int]:
        def handle(request: int, response: int, _data: int) -> int:
            try:
                with self._active_calls:
                    return self._handle(route, request, response)
            except BaseException as problem:  # exceptions must not propagate into C
                self._report(problem)
                lib.mk_response_set_status(response, 500)
                return REFUSE
        return handle

    def _handle(self, route: Route, pointer: int, response_pointer: int) -> int:
        exchange = self._waiting.get(pointer)
        if not exchange:
            exchange = Exchange(Request(pointer), Response(response_pointer))
        try:
            return self._call(route, pointer, exchange)
        finally:
            if pointer not in self._waiting:  # the handler has finished
                exchange.end()

    def _call(self, route: Route, pointer: int, exchange: Exchange) -> int:
        request, response = exchange.request, exchange.response
        if exchange.task:
            request._deliver_body()
            return self._apply_result(route, exchange.task.result(), pointer, exchange) if exchange.task.done() else WAIT
        if exchange.deferred:
            return self._apply_deferred(route, exchange.deferred, pointer, exchange)
        if route.content:
            self._keep_exchange(pointer, exchange)
            if not self._read_body(exchange):
                return WAIT
            request.content = b"".join(exchange.parts)
        result = route.function(request, response)
        if inspect.iscoroutine(result):
            return self._start_task(pointer, exchange, result)
        return self._apply_result(route, result, pointer, exchange)

    def _keep_exchange(self, pointer: int, exchange: Exchange) -> None:
        """Keeps the exchange alive, because the request outlives this call to its handler."""
        if pointer in self._waiting:
            return
        self._waiting[pointer] = exchange
        if lib.mk_request_add_cleanup(pointer, self._end, pointer) < 0:
            del self._waiting[pointer]
            raise MemoryError

    def _on_end(self, pointer: int) -> None:
        exchange = self._waiting.pop(pointer, None)
        if exchange:
            exchange.end()

    @staticmethod
    def _read_body(exchange: Exchange) -> bool:
        while data := exchange.request.read_now():
            exchange.parts.append(data)
        return data is not None

    def _start_task(self, pointer: int, exchange: Exchange, coroutine: Any) -> int:
        if not self._loop:
            coroutine.close()
            raise RuntimeError("coroutines and asynchronous generators work only in `await server.serve()`")
        try:
            self._keep_exchange(pointer, exchange)
        except MemoryError:
            coroutine.close()
            raise
        exchange.task = self._loop.create_task(coroutine)
        lib.mk_request_cancel_on_disconnect(pointer)
        exchange.task.add_done_callback(lambda _task: self._resume(exchange))
        return WAIT

    @staticmethod
    def _resume(exchange: Exchange) -> None:
        if exchange.request._pointer is not None:
            lib.mk_request_resume(exchange.request._pointer)

    def _apply_deferred(self, route: Route, deferred: Deferred, pointer: int, exchange: Exchange) -> int:
        if not deferred._result:
            return WAIT
        exchange.deferred = None
        return self._apply_result(route, deferred._take(), pointer, exchange)

    def _apply_result(self, route: Route, result: Any, pointer: int, exchange: Exchange) -> int:
        response = exchange.response
        if isinstance(result, Deferred):
            if result is not exchange.request._deferred or exchange.task:
                raise TypeError("only a handler that is no coroutine can return a Deferred, that of its own request")
            self._keep_exchange(pointer, exchange)
            exchange.deferred = result
            lib.mk_request_cancel_on_disconnect(pointer)
            return self._apply_deferred(route, result, pointer, exchange)
        if isinstance(result, tuple):
            result = self._apply_tuple(result, response)
        if result is None:
            return DONE
        if isinstance(result, int) and not isinstance(result, bool):
            response.set_status(result)
            return DONE if result < 400 else REFUSE
        if isinstance(result, (dict, list)):
            response._default_type(JSON)
            result = json.dumps(result)
        if isinstance(result, (str, bytes, bytearray, memoryview)):
            response._default_type(TEXT if isinstance(result, str) else BYTES)
            response._set_content(result)
            return DONE
        return self._stream_result(route, result, pointer, exchange)

    @staticmethod
    def _apply_tuple(result: tuple[Any, ...], response: Response) -> Any:
        """Applies a tuple (content, status) or (content, status, headers)."""
        if len(result) not in (2, 3) or not isinstance(result[1], int) or isinstance(result[1], bool):
            raise TypeError("a handler returned a tuple; expected (content, status) or (content, status, headers)")
        response.set_status(result[1])
        for name, value in (result[2] if len(result) == 3 else {}).items():
            response.set(name, value)
        return result[0]

    def _stream_result(self, route: Route, result: Any, pointer: int, exchange: Exchange) -> int:
        is_async = inspect.isasyncgen(result)
        if not is_async and not isinstance(result, collections.abc.Iterator):
            raise TypeError(f"a handler returned {type(result).__name__}; expected text, bytes, dict, list, an iterator, a number, "
                            "None, or a tuple")
        if is_async and not self._loop:
            raise RuntimeError("coroutines and asynchronous generators work only in `await server.serve()`")
        self._keep_exchange(pointer, exchange)
        exchange.response._default_type(EVENTS if route.events else TEXT)
        if route.events:
            lib.mk_request_set_handler_timeout(pointer, 0xFFFFFFFF)  # MK_FOREVER: an event stream may be silent
        encode = encode_event if route.events else as_bytes
        source = AsyncSource(result, exchange.request, self._loop, encode) if is_async and self._loop else Source(result, encode)
        self._sources.begin(exchange.response, source)
        return DONE

    # ---- Running ----

    def _begin_use(self) -> int:
        with self._changed:
            pointer = self._use()
            self._users += 1
            self._active_calls.calls += 1
            running.add(self)
            return pointer

    def _end_use(self) -> None:
        with self._changed:
            self._users -= 1
            self._active_calls.calls -= 1
            self._changed.notify_all()

    def _begin_stepping(self) -> None:
        """Called by run() and serve(). Only one of them may run at a time, because a single thread must call all steps."""
        with self._changed:
            if self._is_stepping:
                raise RuntimeError("the server is running already")
            self._use()
            self._is_stepping = True

    def run(self) -> None:
        """Serves in the calling thread until stop() is called or a KeyboardInterrupt is raised."""
        self._begin_stepping()
        pointer = self._begin_use()
        try:
            fd = self._check(lib.mk_server_fd(pointer))
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            while not poll.poll(POLL_MS) or self._check(lib.mk_server_step(pointer)):
                self._raise_interruption()
        finally:
            self._end_use()
            self._is_stepping = False

    def start(self, threads: int = 1) -> None:
        """Serves in `threads` background threads until stop() is called. wait() returns when the threads have ended."""
        with self._changed:
            running.add(self)
            self._check(lib.mk_server_start(self._use(), threads))

    async def serve(self, step: Callable[[], int] | None = None) -> None:
        """Serves in the asyncio event loop until stop() is called or the task is cancelled. Only libmonkey.asgi passes `step`."""
        self._begin_stepping()
        try:
            await self._serve_in_loop(step)
        finally:
            self._is_stepping = False

    async def _serve_in_loop(self, step: Callable[[], int] | None) -> None:
        fd = self._check(lib.mk_server_fd(self._use()))
        self._loop, self._loop_thread = asyncio.get_running_loop(), threading.get_ident()
        running.add(self)
        self._ended = self._loop.create_future()

        def run_step() -> None:
            more = step() if step else lib.mk_server_step(self._pointer)
            self._raise_interruption()
            if more <= 0:
                self._end_serving(more)

        self._loop.add_reader(fd, run_step)
        self._watched = fd
        try:
            self._check(await self._ended)
        finally:
            self._end_serving(0)

    def _end_serving(self, result: int) -> None:
        assert self._loop and self._ended
        if self._watched is not None:
            self._loop.remove_reader(self._watched)
            self._watched = None
        if not self._ended.done():
            self._ended.set_result(result)

    def stop(self, drain: float = 5.0) -> None:
        """Stops the server; may be called from any thread. Open requests have `drain` seconds to finish."""
        with self._changed:
            if self._pointer is not None:
                lib.mk_server_stop(self._pointer, max(0, min(int(drain * 1000), 0xffffffff)))
                end = time.monotonic() + drain
                self._drain_end = min(end, self._drain_end or end)

    def _drain_left(self) -> float:
        """Returns the remaining drain time of stop(), in seconds."""
        return max(0.0, self._drain_end - time.monotonic())

    def wait(self) -> None:
        """Waits for the threads that start() created."""
        pointer = self._begin_use()
        try:
            self._check(lib.mk_server_wait(pointer))
        finally:
            self._end_use()

    def close(self) -> None:
        """Stops the server at once, waits until run() and wait() have returned in other threads, and frees it."""
        if self._active_calls.callbacks or self._active_calls.calls:
            raise RuntimeError("a handler, on_log or the thread of run() cannot close the server: call stop()")
        if self._watched is not None and threading.get_ident() != self._loop_thread:
            raise RuntimeError("the server runs in the asyncio event loop of another thread: call stop()")
        self.stop(0)
        with self._changed:
            while self._users:
                self._changed.wait()
            pointer, self._pointer = self._pointer, None
        if self._watched is not None:
            self._end_serving(0)
        if pointer:
            lib.mk_server_free(pointer)
        running.discard(self)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_pointer", None):  # the server never ran: running servers are kept alive by `running`
            lib.mk_server_free(self._pointer)
