# SPDX-License-Identifier: Apache-2.0
"""A server: configured by method calls, then run in this thread, in its own threads, or in the asyncio event loop."""
import asyncio
import atexit
import collections.abc
import ctypes
import inspect
import json
import select
import threading
import traceback

from .api import DONE, REFUSE, WAIT, Close, Handler, Log, Options, as_c, lib
from .request import Request, Response
from .source import AsyncSource, Source, Sources

LEVELS = ("error", "warn", "info", "debug")
POLL_MS = 1000  # maximum time until run() notices a signal that arrived just before it started to wait
TEXT, BYTES, JSON = "text/plain; charset=utf-8", "application/octet-stream", "application/json"

# Keeps running servers alive: the library calls their callbacks even if the program has dropped all references to them.
running = set()


@atexit.register
def _close_running():
    for server in list(running):
        try:
            server.close()
        except RuntimeError:  # the server runs in the event loop of another thread
            server.stop(0)


class ActiveCalls(threading.local):
    """Counts the library calls and callbacks that are active in this thread; the server must not be freed during any of them."""

    callbacks = 0  # active calls to handlers, generators and on_log
    calls = 0  # active calls to run() and wait()

    def __enter__(self):
        self.callbacks += 1

    def __exit__(self, *_exception):
        self.callbacks -= 1


class Error(Exception):
    """The server rejected a setting or could not start; the message says why."""


class Exchange:
    """A request and its response, kept while the handler waits for the body or runs as a coroutine."""

    def __init__(self, request, response):
        self.request, self.response = request, response
        self.task = None
        self.parts = []

    def end(self):
        """Called when the request has ended."""
        self.response._end()
        self.request._end()
        if self.task:
            self.task.cancel()


class Server:
    """A server. `on_log(level, text)` receives its log messages; without it, they are discarded."""

    def __init__(self, on_log=None):
        self._active_calls = ActiveCalls()
        self._log = Log(self._log_callback(on_log)) if on_log else Log()
        options = Options(ctypes.sizeof(Options), self._log, None)
        self._pointer = lib.mk_server_new(ctypes.byref(options))
        if not self._pointer:
            raise MemoryError
        self._handlers = []  # keeps the callbacks alive, because the library calls them
        self._waiting = {}  # request pointer -> Exchange
        self._end = Close(self._on_end)
        self._sources = Sources(self._active_calls)
        self._loop = None
        self._ended = self._watched = None  # the future that serve() awaits, and the descriptor that the event loop watches
        self._loop_thread = None
        self._users = 0  # number of active calls to run() and wait()
        self._changed = threading.Condition(threading.RLock())  # protects the pointer from close() in another thread

    def _log_callback(self, on_log):
        def log(_ctx, level, text):
            try:
                with self._active_calls:
                    on_log(LEVELS[level], text.text())
            except BaseException:  # exceptions must not propagate into C
                traceback.print_exc()
        return log

    def _check(self, result):
        if result < 0:
            raise Error(lib.mk_server_error(self._pointer).decode())
        return result

    def _use(self):
        if self._pointer is None:
            raise Error("the server was closed")
        return self._pointer

    # ---- Configuration ----

    def read(self, path):
        """Reads a configuration file, or the monkey.conf of a folder."""
        self._check(lib.mk_server_load_config(self._use(), as_c(str(path))))

    def set(self, section, key, value):
        """Sets a configuration key: server.set("SERVER", "KeepAliveTimeout", "5s")."""
        self._check(lib.mk_server_set(self._use(), as_c(section), as_c(key), as_c(str(value))))

    def add_section(self, section):
        """Starts another section with that name."""
        self._check(lib.mk_server_add_section(self._use(), as_c(section)))

    def add_host(self, names=None, root=None):
        """Adds a virtual host with these names, separated by spaces, and this document root."""
        self._check(lib.mk_server_add_vhost(self._use(), names and as_c(names), root and as_c(str(root))))

    def listen(self, where="127.0.0.1:0", tls=False):
        """Listens on an address, and returns the port."""
        port = ctypes.c_uint()
        text = f"{where} tls" if tls else where
        self._check(lib.mk_server_listen(self._use(), as_c(text), ctypes.byref(port)))
        return port.value

    def listen_socket(self, socket, tls=False):
        """Listens on a bound socket; the caller keeps ownership of it."""
        self._check(lib.mk_server_listen_fd(self._use(), socket.fileno(), tls))

    def route(self, what, content=False):
        """Decorates a handler: `@server.route("GET /users/:id<int>")`.

        The handler is called with a request and a response, which are valid until the request ends. Its return value is the body:

        - str or bytes; a dict or a list is sent as JSON
        - an iterator or a generator of str or bytes, which produces the next piece when the client can receive it
        - an int: a status, sent with its error page if it is 400 or above; None: an empty body
        - a tuple (content, status) or (content, status, headers), where headers is a dict

        Anything else raises TypeError, and the client gets a 500. With `content=True`, the handler is called when the whole
        request body has arrived. With `serve()`, the handler may be a coroutine or an asynchronous generator.
        """
        def decorate(function):
            callback = Handler(self._handler_callback(function, content))
            self._check(lib.mk_server_add_route(self._use(), as_c(what), callback, None))
            self._handlers.append(callback)
            return function
        return decorate

    # ---- Handling requests ----

    def _handler_callback(self, function, wants_content):
        def handle(request, response, _data):
            try:
                with self._active_calls:
                    return self._handle(function, wants_content, request, response)
            except BaseException:  # exceptions must not propagate into C
                traceback.print_exc()
                lib.mk_response_set_status(response, 500)
                return REFUSE
        return handle

    def _handle(self, function, wants_content, pointer, response_pointer):
        exchange = self._waiting.get(pointer)
        if not exchange:
            exchange = Exchange(Request(pointer), Response(response_pointer))
        try:
            return self._call(function, wants_content, pointer, exchange)
        finally:
            if pointer not in self._waiting:  # the handler has finished
                exchange.end()

    def _call(self, function, wants_content, pointer, exchange):
        request, response = exchange.request, exchange.response
        if exchange.task:
            request._deliver_body()
            return self._apply_result(exchange.task.result(), pointer, exchange) if exchange.task.done() else WAIT
        if wants_content:
            self._keep_exchange(pointer, exchange)
            if not self._read_body(exchange):
                return WAIT
            request.content = b"".join(exchange.parts)
        result = function(request, response)
        if inspect.iscoroutine(result):
            return self._start_task(pointer, exchange, result)
        return self._apply_result(result, pointer, exchange)

    def _keep_exchange(self, pointer, exchange):
        """Keeps the exchange alive, because the request outlives this call to its handler."""
        if pointer in self._waiting:
            return
        self._waiting[pointer] = exchange
        if lib.mk_request_add_cleanup(pointer, self._end, pointer) < 0:
            del self._waiting[pointer]
            raise MemoryError

    def _on_end(self, pointer):
        exchange = self._waiting.pop(pointer, None)
        if exchange:
            exchange.end()

    @staticmethod
    def _read_body(exchange):
        while data := exchange.request.read_now():
            exchange.parts.append(data)
        return data is not None

    def _start_task(self, pointer, exchange, coroutine):
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
    def _resume(exchange):
        if exchange.request._pointer is not None:
            lib.mk_request_resume(exchange.request._pointer)

    def _apply_result(self, result, pointer, exchange):
        response = exchange.response
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
        return self._stream_result(result, pointer, exchange)

    @staticmethod
    def _apply_tuple(result, response):
        """Applies a tuple (content, status) or (content, status, headers)."""
        if len(result) not in (2, 3) or not isinstance(result[1], int) or isinstance(result[1], bool):
            raise TypeError("a handler returned a tuple; expected (content, status) or (content, status, headers)")
        response.set_status(result[1])
        for name, value in (result[2] if len(result) == 3 else {}).items():
            response.set(name, value)
        return result[0]

    def _stream_result(self, result, pointer, exchange):
        is_async = inspect.isasyncgen(result)
        if not is_async and not isinstance(result, collections.abc.Iterator):
            raise TypeError(f"a handler returned {type(result).__name__}; expected text, bytes, dict, list, an iterator, a number, "
                            "None, or a tuple")
        if is_async and not self._loop:
            raise RuntimeError("coroutines and asynchronous generators work only in `await server.serve()`")
        self._keep_exchange(pointer, exchange)
        exchange.response._default_type(TEXT)
        source = AsyncSource(result, exchange.request, self._loop) if is_async else Source(result)
        self._sources.begin(exchange.response, source)
        return DONE

    # ---- Running ----

    def _begin_use(self):
        with self._changed:
            pointer = self._use()
            self._users += 1
            self._active_calls.calls += 1
            running.add(self)
            return pointer

    def _end_use(self):
        with self._changed:
            self._users -= 1
            self._active_calls.calls -= 1
            self._changed.notify_all()

    def run(self):
        """Serves in this thread until stop() is called or a KeyboardInterrupt is raised."""
        pointer = self._begin_use()
        try:
            fd = self._check(lib.mk_server_fd(pointer))
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            while not poll.poll(POLL_MS) or self._check(lib.mk_server_step(pointer)):
                pass
        finally:
            self._end_use()

    def start(self, threads=1):
        """Serves in `threads` background threads until stop() and wait() are called."""
        with self._changed:
            running.add(self)
            self._check(lib.mk_server_start(self._use(), threads))

    async def serve(self, step=None):
        """Serves in the asyncio event loop until stop() is called or the task is cancelled. `step` is for libmonkey.asgi."""
        self._loop, self._loop_thread = asyncio.get_running_loop(), threading.get_ident()
        running.add(self)
        fd = self._check(lib.mk_server_fd(self._use()))
        self._ended = self._loop.create_future()

        def run_step():
            more = step() if step else lib.mk_server_step(self._pointer)
            if more <= 0:
                self._end_serving(more)

        self._loop.add_reader(fd, run_step)
        self._watched = fd
        try:
            self._check(await self._ended)
        finally:
            self._end_serving(0)

    def _end_serving(self, result):
        if self._watched is not None:
            self._loop.remove_reader(self._watched)
            self._watched = None
        if not self._ended.done():
            self._ended.set_result(result)

    def stop(self, drain=5.0):
        """Stops the server; may be called from any thread. Open requests have `drain` seconds to finish."""
        with self._changed:
            if self._pointer is not None:
                lib.mk_server_stop(self._pointer, max(0, min(int(drain * 1000), 0xffffffff)))

    def wait(self):
        """Waits for the threads that start() created."""
        pointer = self._begin_use()
        try:
            self._check(lib.mk_server_wait(pointer))
        finally:
            self._end_use()

    def close(self):
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

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.close()

    def __del__(self):
        if getattr(self, "_pointer", None):  # the server never ran: running servers are kept alive by `running`
            lib.mk_server_free(self._pointer)
