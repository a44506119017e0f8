# SPDX-License-Identifier: Apache-2.0
"""A server: set up by calls, then run in this thread, in threads of its own, or in the loop of asyncio."""
import asyncio
import ctypes
import inspect
import select
import traceback

from .api import DONE, REFUSE, WAIT, Close, Handler, Log, Options, lib
from .request import Request, Response
from .source import AsyncSource, Source, Sources

LEVELS = ("error", "warn", "info", "debug")
SOON_MS = 1000  # in which run() notices a signal that came just before it began to wait


class Error(Exception):
    """The server refused a setting, or could not start; the text says why."""


class Exchange:
    """A request whose handler waits, for content or in a coroutine."""

    def __init__(self, request, response):
        self.request, self.response = request, response
        self.task = None
        self.parts = []

    def end(self):
        """The request is over: what the handler still has of it is of no use any more."""
        self.response._pointer = None
        self.request._end()
        if self.task:
            self.task.cancel()


class Server:
    """A server. `on_log(level, text)` gets its messages; without it they go nowhere."""

    def __init__(self, on_log=None):
        self._log = Log(lambda _ctx, level, text: on_log(LEVELS[level], text.text())) if on_log else Log()
        options = Options(ctypes.sizeof(Options), self._log, None)
        self._pointer = lib.mk_server_new(ctypes.byref(options))
        if not self._pointer:
            raise MemoryError
        self._handlers = []  # the library calls them
        self._waiting = {}  # request pointer -> Exchange
        self._end = Close(self._on_end)
        self._sources = Sources(traceback.print_exc)
        self._loop = None

    def _check(self, result):
        if result < 0:
            raise Error(lib.mk_server_why(self._pointer).decode())
        return result

    # ---- Setting up ----

    def read(self, path):
        """Reads a configuration file, or the monkey.conf of a folder."""
        self._check(lib.mk_server_read(self._pointer, str(path).encode()))

    def set(self, section, key, value):
        """A line of the configuration: server.set("SERVER", "KeepAliveTimeout", "5s")."""
        self._check(lib.mk_server_set(self._pointer, section.encode(), key.encode(), str(value).encode()))

    def add_section(self, section):
        """Begins another section of that name."""
        self._check(lib.mk_server_add_section(self._pointer, section.encode()))

    def add_host(self, names=None, root=None):
        """Adds a host: its names, with blanks between them, and the folder of its files."""
        self._check(lib.mk_server_add_host(self._pointer, names and names.encode(), root and str(root).encode()))

    def listen(self, where="127.0.0.1:0", tls=False):
        """Opens an address, and tells its port."""
        port = ctypes.c_uint()
        text = f"{where} tls" if tls else where
        self._check(lib.mk_server_listen(self._pointer, text.encode(), ctypes.byref(port)))
        return port.value

    def listen_socket(self, socket, tls=False):
        """Listens on a bound socket, which stays the caller's."""
        self._check(lib.mk_server_listen_fd(self._pointer, socket.fileno(), tls))

    def route(self, what, content=False):
        """Decorates a handler: `@server.route("GET /users/:id<int>")`.

        It is called with a request and a response. What it returns is the content: text or bytes; an iterator or a
        generator of these, which is asked for the next piece when the client has room for it; None for none, or a
        number for an error with that status. With `content=True` it is called when the whole content has arrived.
        In asyncio's loop it may be a coroutine, or an asynchronous generator.
        """
        def decorate(function):
            callback = Handler(self._answers(function, content))
            self._check(lib.mk_server_add_route(self._pointer, what.encode(), callback, None))
            self._handlers.append(callback)
            return function
        return decorate

    # ---- Answering ----

    def _answers(self, function, wants_content):
        def handle(request, response, _data):
            try:
                return self._handle(function, wants_content, request, Response(response))
            except BaseException:  # there is nothing above but C
                traceback.print_exc()
                lib.mk_response_set_status(response, 500)
                return REFUSE
        return handle

    def _handle(self, function, wants_content, pointer, response):
        exchange = self._waiting.get(pointer)
        request = exchange.request if exchange else Request(pointer)
        if exchange and exchange.task:
            request._arrived()
            return self._finish(exchange, response) if exchange.task.done() else WAIT
        if wants_content:
            exchange = exchange or self._wait(pointer, request, response)
            if not self._is_whole(exchange):
                return WAIT
            request.content = b"".join(exchange.parts)
        result = function(request, response)
        if inspect.iscoroutine(result):
            return self._begin(exchange or self._wait(pointer, request, response), result)
        return self._answer(result, request, pointer, response)

    def _wait(self, pointer, request, response):
        exchange = self._waiting[pointer] = Exchange(request, response)
        if lib.mk_request_on_end(pointer, self._end, pointer) < 0:
            del self._waiting[pointer]
            raise MemoryError
        return exchange

    def _on_end(self, pointer):
        exchange = self._waiting.pop(pointer, None)
        if exchange:
            exchange.end()

    @staticmethod
    def _is_whole(exchange):
        while data := exchange.request.read_now():
            exchange.parts.append(data)
        return data is not None

    def _begin(self, exchange, coroutine):
        if not self._loop:
            coroutine.close()
            raise RuntimeError("coroutines answer only in `await server.serve()`")
        exchange.task = self._loop.create_task(coroutine)
        lib.mk_request_follow_client(exchange.request._pointer)
        exchange.task.add_done_callback(lambda _task: self._resume(exchange))
        return WAIT

    @staticmethod
    def _resume(exchange):
        if exchange.request._pointer is not None:
            lib.mk_request_resume(exchange.request._pointer)

    def _finish(self, exchange, response):
        return self._answer(exchange.task.result(), exchange.request, exchange.request._pointer, response)

    def _answer(self, result, request, pointer, response):
        if isinstance(result, bool) or result is None:
            return DONE
        if isinstance(result, int):
            response.set_status(result)
            return REFUSE
        if isinstance(result, (str, bytes, bytearray, memoryview)):
            response._set_content(result)
            return DONE
        if inspect.isasyncgen(result):
            if pointer not in self._waiting:
                self._wait(pointer, request, response)
            self._sources.begin(response, AsyncSource(result, request, self._loop))
        else:
            self._sources.begin(response, Source(iter(result)))
        return DONE

    # ---- Running ----

    def run(self):
        """Serves in this thread until stop() is called, or a KeyboardInterrupt."""
        fd = self._check(lib.mk_server_fd(self._pointer))
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        while True:
            if poll.poll(SOON_MS) and self._check(lib.mk_server_step(self._pointer)) == 0:
                return

    def start(self, threads=1):
        """Serves in so many threads of its own; stop() and wait() end it."""
        self._check(lib.mk_server_start(self._pointer, threads))

    async def serve(self):
        """Serves in the loop of asyncio until stop() is called, or the task is cancelled."""
        self._loop = asyncio.get_running_loop()
        ended = self._loop.create_future()
        fd = self._check(lib.mk_server_fd(self._pointer))

        def step():
            more = lib.mk_server_step(self._pointer)
            if more <= 0 and not ended.done():
                self._loop.remove_reader(fd)
                ended.set_result(more)

        self._loop.add_reader(fd, step)
        try:
            self._check(await ended)
        finally:
            self._loop.remove_reader(fd)

    def stop(self, drain=5.0):
        """Ends the server, from any thread: requests that are open have so many seconds to end."""
        lib.mk_server_stop(self._pointer, int(drain * 1000))

    def wait(self):
        """Waits for the threads of start()."""
        self._check(lib.mk_server_wait(self._pointer))

    def close(self):
        """Ends the server at once, and frees it."""
        pointer, self._pointer = self._pointer, None
        if pointer:
            lib.mk_server_free(pointer)

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.close()
