# SPDX-License-Identifier: Apache-2.0
"""An ASGI 3 server: serves applications written with Starlette, FastAPI, Django, Quart, ... See monkey-asgi --help.

Everything runs in one thread: when the server's descriptor is readable, the event loop calls mk_server_step(), which calls
the callbacks of this module. A request lives from the first call of its handler until its cleanup function is called.
"""
import asyncio
import collections
import ctypes
import errno
import os
import socket
import traceback
import urllib.parse
from ctypes import byref, c_void_p

from .api import (DONE, LENGTH_UNKNOWN, REFUSE, WAIT, Addr, Close, Handler, Read, SourceOps, Str, WebSocketClose,
                  WebSocketMessage, WebSocketOps, WebSocketOptions, WebSocketPong, WebSocketWritable, as_str, lib)
from .server import Error, Server

READ_MAX = 64 * 1024
BUFFERED_MAX = 64 * 1024  # send() waits while this many bytes of a body are queued
MESSAGES_MAX = 1024 * 1024  # a WebSocket is paused while this many bytes of messages are queued
NO_CODE, ABNORMAL = 1005, 1006
TEXT, BINARY = 1, 2
VERSIONS = {10: "1.0", 11: "1.1", 20: "2"}
FRAMING = {b"content-length", b"transfer-encoding", b"connection", b"keep-alive", b"upgrade"}  # set by the server

buffer = ctypes.create_string_buffer(READ_MAX)  # holds body bytes; only one call uses it at a time


class Disconnected(OSError):
    """The client has disconnected, so send() has no effect."""


def add_headers(response, headers):
    """Adds the application's headers, except framing headers, which the server sets. Returns the Content-Length, or None."""
    length = None
    for name, value in headers:
        if name.lower() in FRAMING:
            if name.lower() == b"content-length":
                length = int(value)
            continue
        (n, _name), (v, _value) = as_str(name), as_str(value)
        if lib.mk_response_add_header(response, n, v) < 0:
            raise ValueError(f"invalid header: {name!r}: {value!r}")
    return length


class Exchange:
    """A request, its response, and the task that runs the application. The response is not started (`status` is None), started,
    or complete (`is_complete`). `was_handed_over` is set once the library has taken over the response."""

    def __init__(self, host, request, response):
        self.host, self.request, self.response = host, request, response
        self.status, self.headers = None, ()
        self.pieces, self.size = collections.deque(), 0
        self.is_complete = self.was_handed_over = self.has_ended = False
        self.left = lib.mk_request_length(request)  # unread bytes of the request body; -1: unknown
        self.unsent = None  # bytes still to be sent according to Content-Length; None: unknown
        self.task = self.reader = self.writer = self.end_waiter = None

    def is_head(self):
        return lib.mk_request_method_name(self.request).bytes() == b"HEAD"

    # ---- Called by the library ----

    def handle(self):
        """Called again after resume(), or because input has arrived."""
        if self.reader:
            self.read_body()
        if self.status is not None and (self.is_complete or self.pieces or self.task.done()):
            return self.hand_over()
        if self.task.done():
            lib.mk_response_set_status(self.response, 500)
            return REFUSE
        return WAIT

    def hand_over(self):
        self.was_handed_over = True
        try:
            lib.mk_response_set_status(self.response, self.status)
            length = add_headers(self.response, self.headers)
        except ValueError:
            traceback.print_exc()
            self.task.cancel()
            lib.mk_response_set_status(self.response, 500)
            return REFUSE
        self.unsent = length
        if self.is_complete and (length is None or self.pieces or not self.is_head()):
            text, _data = as_str(b"".join(self.pieces))
            self.pieces.clear()
            lib.mk_response_set_body(self.response, text)
        else:
            key = self.host.add_source(self)
            lib.mk_response_set_body_source(self.response, byref(self.host.source_ops), key,
                                            LENGTH_UNKNOWN if length is None else length)
        return DONE

    def read(self, buf, cap):
        """The library asks for the next bytes of the response body."""
        if self.reader:
            self.read_body()
        if not self.pieces:
            if self.is_complete:
                return 0
            return -errno.EIO if self.task.done() else -errno.EAGAIN
        piece = self.pieces.popleft()
        if len(piece) > cap:
            self.pieces.appendleft(piece[cap:])
            piece = piece[:cap]
        ctypes.memmove(buf, bytes(piece), len(piece))
        self.size -= len(piece)
        if self.unsent is not None:
            self.unsent -= len(piece)
        if self.writer and self.size < BUFFERED_MAX:
            self.writer.set_result(None)
            self.writer = None
        return len(piece)

    def end(self):
        """The request has ended: its pointers are invalid."""
        self.has_ended = True
        for future in (self.reader, self.writer, self.end_waiter):
            if future and not future.done():
                future.set_result(b"" if future is self.reader else None)
        self.reader = self.writer = self.end_waiter = None

    def read_body(self):
        n = lib.mk_request_read(self.request, buffer, READ_MAX)
        if n == -errno.EAGAIN:
            return
        future, self.reader = self.reader, None
        if future.done():
            return
        if n < 0:
            future.set_exception(Disconnected(-n, os.strerror(-n)) if n == -errno.ECONNRESET else OSError(-n, os.strerror(-n)))
        else:
            future.set_result(buffer.raw[:n] if n < 1024 else ctypes.string_at(buffer, n))

    # ---- Called by the application ----

    def resume(self):
        if not self.has_ended:
            lib.mk_request_resume(self.request)

    async def receive(self):
        if self.is_complete:
            return {"type": "http.disconnect"}
        if self.left != 0 and not self.has_ended:
            self.reader = self.host.loop.create_future()
            self.resume()
            data = await self.reader
            if not self.has_ended:
                self.left = 0 if not data else self.left - len(data) if self.left > 0 else -1
                return {"type": "http.request", "body": data, "more_body": self.left != 0}
        elif self.left == 0 and not self.has_ended:
            self.left = None
            return {"type": "http.request", "body": b"", "more_body": False}
        if not self.has_ended:
            self.end_waiter = self.end_waiter or self.host.loop.create_future()
            await asyncio.shield(self.end_waiter)
        return {"type": "http.disconnect"}

    async def send(self, message):
        if self.has_ended and not self.is_complete:
            if self.unsent == 0:
                return  # the last message of a body whose length is known
            raise Disconnected(errno.EPIPE, "the client has disconnected")
        kind = message["type"]
        if kind == "http.response.start" and self.status is None:
            self.status, self.headers = int(message["status"]), list(message.get("headers", ()))
        elif kind == "http.response.body" and self.status is not None and not self.is_complete:
            await self.send_body(message.get("body", b""), message.get("more_body", False))
        else:
            raise RuntimeError(f"unexpected message {kind!r}")

    async def send_body(self, body, more):
        if body:
            self.pieces.append(body)
            self.size += len(body)
        self.is_complete = not more
        if body or not more:
            self.resume()
        if more and self.size >= BUFFERED_MAX:
            self.writer = self.host.loop.create_future()
            await self.writer


class WebSocket:
    """A WebSocket, from the request that opens it until on_close(). `socket` is set while the WebSocket is open. Before that, the
    application may reject the request with a response."""

    def __init__(self, host, request, response):
        self.host, self.request, self.response = host, request, response
        self.accepted = self.denial = self.socket = self.options = None
        self.received, self.size = collections.deque([{"type": "websocket.connect"}]), 0
        self.reader = self.writer = self.task = None
        self.is_paused = self.has_ended = self.close_sent = False

    # ---- Called by the library ----

    def handle(self):
        if self.accepted is not None:
            return self.open()
        if self.denial is not None or self.task.done():
            return self.deny()
        return WAIT

    def open(self):
        add_headers(self.response, self.accepted.get("headers", ()))
        self.options = self.host.websocket_options(self.accepted.get("subprotocol"))
        socket = c_void_p()
        self.host.sockets[id(self)] = self
        if lib.mk_websocket_open(self.request, self.response, byref(self.options), id(self), byref(socket)) < 0:
            del self.host.sockets[id(self)]
            self.finish(ABNORMAL, "")
            return REFUSE
        self.socket = socket.value
        self.wake_writer()
        return DONE

    def deny(self):
        status, headers, body = self.denial or (403 if self.close_sent else 500, (), b"")
        self.has_ended = True
        lib.mk_response_set_status(self.response, status)
        if self.denial is None:
            return REFUSE
        add_headers(self.response, headers)
        text, _data = as_str(body)
        lib.mk_response_set_body(self.response, text)
        return DONE

    def on_message(self, kind, data):
        key, value = ("text", data.bytes().decode()) if kind == TEXT else ("bytes", data.bytes())
        self.size += data.len
        self.receive_later({"type": "websocket.receive", key: value})
        if self.size >= MESSAGES_MAX and self.socket:
            self.is_paused = True
            lib.mk_websocket_pause(self.socket)

    def finish(self, code, reason):
        """The WebSocket was closed, or the client is gone."""
        if not self.has_ended:
            self.has_ended = True
            self.receive_later({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.socket = None
        self.wake_writer()

    def end(self):
        """The request has ended."""
        self.finish(ABNORMAL, "")
        self.request = None

    def receive_later(self, message):
        self.received.append(message)
        if self.reader and not self.reader.done():
            self.reader.set_result(None)

    def wake_writer(self):
        if self.writer and not self.writer.done():
            self.writer.set_result(None)

    # ---- Called by the application ----

    async def receive(self):
        while not self.received:
            self.reader = self.host.loop.create_future()
            await self.reader
        message = self.received.popleft()
        self.size -= len(message.get("text") or message.get("bytes") or b"")
        if self.is_paused and self.socket and self.size < MESSAGES_MAX // 2:
            self.is_paused = False
            lib.mk_websocket_resume(self.socket)
        return message

    async def wait_writable(self):
        self.writer = self.host.loop.create_future()
        await self.writer

    async def send(self, message):
        kind = message["type"]
        if self.has_ended:
            raise Disconnected(errno.EPIPE, "the WebSocket is closed")
        if kind == "websocket.accept" and self.accepted is None and not self.close_sent and self.denial is None:
            self.accepted = message
            lib.mk_request_resume(self.request)
            await self.wait_writable()
        elif kind == "websocket.send" and self.socket:
            await self.send_message(message)
        elif kind == "websocket.close" and not self.close_sent:
            self.close(message.get("code", 1000), message.get("reason") or "")
        elif kind == "websocket.http.response.start" and self.accepted is None and self.denial is None:
            self.denial = (message["status"], list(message.get("headers", ())), b"")
        elif kind == "websocket.http.response.body" and self.denial is not None:
            self.denial = (*self.denial[:2], self.denial[2] + message.get("body", b""))
            if not message.get("more_body", False):
                lib.mk_request_resume(self.request)
        else:
            raise RuntimeError(f"unexpected message {kind!r}")

    async def send_message(self, message):
        text = message.get("text")
        data, _data = as_str(message["bytes"] if text is None else text)
        while self.socket:
            result = lib.mk_websocket_send(self.socket, BINARY if text is None else TEXT, data)
            if result == 0:
                return
            if result != -errno.EAGAIN:
                break
            await self.wait_writable()
        raise Disconnected(errno.EPIPE, "the WebSocket is closed")

    def close(self, code, reason):
        self.close_sent = True
        if self.socket:
            text, _data = as_str(reason)
            lib.mk_websocket_close(self.socket, code, text)
        else:
            lib.mk_request_resume(self.request)


class Lifespan:
    """The startup and shutdown of an application: https://asgi.readthedocs.io, section Lifespan."""

    def __init__(self, app, mode="auto"):
        self.app, self.mode, self.state = app, mode, {}
        self.messages = asyncio.Queue()
        self.replies = asyncio.Queue()
        self.task = None

    async def startup(self):
        """Returns when the application is ready. Raises Error if it failed to start."""
        if self.mode == "off":
            return
        self.task = asyncio.ensure_future(self.run())
        await self.request("startup")

    async def shutdown(self):
        if self.task and not self.task.done():
            await self.request("shutdown")
            await self.task

    async def run(self):
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        try:
            await self.app(scope, self.messages.get, self.replies.put)
        except BaseException as problem:
            await self.replies.put({"type": "ended", "problem": problem})
        else:
            await self.replies.put({"type": "ended"})

    async def request(self, step):
        await self.messages.put({"type": f"lifespan.{step}"})
        reply = await self.replies.get()
        if reply["type"] == f"lifespan.{step}.failed":
            raise Error(f"the application failed at {step}: {reply.get('message', '')}")
        if reply["type"] == "ended" and "problem" in reply and (self.mode == "on" or step == "shutdown"):
            raise Error(f"the application failed at {step}") from reply["problem"]


class Host:
    """Runs an ASGI application in a server. Configure `server` before serve(): listen(), set(), read()."""

    def __init__(self, app, root_path="", lifespan="auto", on_log=None):
        self.app, self.root_path = app, root_path
        self.server = Server(on_log)
        self.lifespan_mode = lifespan
        self.loop = self.state = None
        self.exchanges = {}  # request pointer -> Exchange or WebSocket
        self.tasks = set()
        self.sources, self.last_source = {}, 0
        self.sockets, self.options = {}, {}
        self.source_ops = SourceOps(Read(self.on_read), Close(self.on_close))
        self.websocket_ops = WebSocketOps(WebSocketMessage(self.on_message), WebSocketWritable(self.on_writable), WebSocketPong(),
                                          WebSocketClose(self.on_websocket_close))
        self.handler, self.cleanup = Handler(self.on_request), Close(self.on_end)

    async def serve(self, ready=None):
        """Serves until the server stops. Calls ready() when the application has started."""
        self.loop = asyncio.get_running_loop()
        lifespan = Lifespan(self.app, self.lifespan_mode)
        await lifespan.startup()
        self.state = lifespan.state
        server = self.server
        server.set("PLUGINS", "Load", "websocket")
        server._check(lib.mk_server_set_default_type(server._use(), None))  # the application sets Content-Type itself
        server._check(lib.mk_server_add_route(server._use(), b"/*path", self.handler, None))
        serving = asyncio.ensure_future(server.serve())
        if ready:
            self.loop.call_soon(ready)
        try:
            await serving
        finally:
            for task in list(self.tasks):
                task.cancel()
            if self.tasks:
                await asyncio.wait(list(self.tasks), timeout=5)
            await lifespan.shutdown()
            server.close()

    # ---- Callbacks of the library: exceptions must not propagate into C ----

    def on_request(self, request, response, _data):
        try:
            exchange = self.exchanges.get(request)
            return exchange.handle() if exchange else self.begin(request, response)
        except BaseException:
            traceback.print_exc()
            lib.mk_response_set_status(response, 500)
            return REFUSE

    def begin(self, request, response):
        tunnel = lib.mk_request_tunnel(request)
        is_websocket = tunnel.len == 9 and tunnel.bytes() == b"websocket"
        exchange = (WebSocket if is_websocket else Exchange)(self, request, response)
        self.exchanges[request] = exchange
        if lib.mk_request_add_cleanup(request, self.cleanup, request) < 0:
            del self.exchanges[request]
            lib.mk_response_set_status(response, 503)
            return REFUSE
        lib.mk_request_set_handler_timeout(request, 0)
        lib.mk_request_cancel_on_disconnect(request)
        scope = self.scope(request, is_websocket)
        exchange.task = self.loop.create_task(self.run(scope, exchange))
        self.tasks.add(exchange.task)
        return WAIT

    async def run(self, scope, exchange):
        try:
            await self.app(scope, exchange.receive, exchange.send)
        except Disconnected:
            pass
        except Exception:
            traceback.print_exc()
            if isinstance(exchange, WebSocket) and exchange.socket and not exchange.close_sent:
                exchange.close(1011, "")
        finally:
            self.tasks.discard(asyncio.current_task())
            self.loop.call_soon(self.after, exchange)

    @staticmethod
    def after(exchange):
        """Called when the application has returned: sends an error if there is no response, or aborts an incomplete response."""
        if isinstance(exchange, WebSocket):
            if exchange.socket and not exchange.close_sent:
                exchange.close(1000, "")
            elif exchange.request and not exchange.has_ended and not exchange.socket:
                lib.mk_request_resume(exchange.request)
        elif not exchange.is_complete:
            exchange.resume()

    def on_end(self, request):
        try:
            self.exchanges.pop(request).end()
        except BaseException:
            traceback.print_exc()

    def add_source(self, exchange):
        self.last_source += 1
        self.sources[self.last_source] = exchange
        return self.last_source

    def on_read(self, key, buf, cap):
        try:
            return self.sources[key].read(buf, cap)
        except BaseException:
            traceback.print_exc()
            return -errno.EIO

    def on_close(self, key):
        self.sources.pop(key, None)

    def websocket_options(self, subprotocol):
        found = self.options.get(subprotocol)
        if not found:
            found = self.options[subprotocol] = WebSocketOptions(
                ops=ctypes.pointer(self.websocket_ops),
                subprotocols=subprotocol.encode() if subprotocol else None, message_max=16 * 1024 * 1024, flags=1)
        return found

    def on_message(self, ctx, _socket, kind, data):
        try:
            self.sockets[ctx].on_message(kind, data)
        except BaseException:
            traceback.print_exc()

    def on_writable(self, ctx, _socket):
        try:
            self.sockets[ctx].wake_writer()
        except BaseException:
            traceback.print_exc()

    def on_websocket_close(self, ctx, _socket, code, reason):
        try:
            self.sockets.pop(ctx).finish(code, (reason.bytes() or b"").decode("utf-8", "replace"))
        except BaseException:
            traceback.print_exc()

    # ---- Scope ----

    def scope(self, request, is_websocket):
        name, value, headers, i = Str(), Str(), [], 0
        while lib.mk_request_header_at(request, i, byref(name), byref(value)):
            headers.append((name.bytes().lower(), value.bytes() or b""))
            i += 1
        target = lib.mk_request_target(request).bytes()
        if not target.startswith((b"/", b"*")):
            target = target[target.find(b"/", target.find(b"://") + 3):]
        raw_path = target.partition(b"?")[0]
        path = (urllib.parse.unquote_to_bytes(raw_path) if lib.mk_request_has_encoded_slash(request)
                else lib.mk_request_path(request).bytes() or b"/").decode("utf-8", "replace")
        scheme = lib.mk_request_scheme(request).bytes().decode()
        scope = {
            "type": "websocket" if is_websocket else "http", "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": VERSIONS.get(lib.mk_request_version(request), "1.1"),
            "scheme": scheme.replace("http", "ws", 1) if is_websocket else scheme,
            "path": self.root_path + path, "raw_path": raw_path,
            "query_string": lib.mk_request_query(request).bytes() or b"", "root_path": self.root_path, "headers": headers,
            "client": self.client(request), "server": self.local(request), "state": dict(self.state), "extensions": {}}
        if is_websocket:
            offered = b",".join(value for name, value in headers if name == b"sec-websocket-protocol").decode("latin-1")
            scope["subprotocols"] = [word.strip() for word in offered.split(",") if word.strip()]
            scope["extensions"] = {"websocket.http.response": {}}
        else:
            scope["method"] = lib.mk_request_method_name(request).bytes().decode("latin-1")
        return scope

    @staticmethod
    def client(request):
        text = lib.mk_request_client_text(request).bytes().decode()
        address = lib.mk_request_client_addr(request)
        return None if address.contents.is_unix else (text, address.contents.port)

    @staticmethod
    def local(request):
        address = Addr()
        if lib.mk_request_local_addr(request, byref(address)) < 0 or address.is_unix:
            return None
        ip = bytes(address.ip)
        family = socket.AF_INET if ip.startswith(bytes(10) + b"\xff\xff") else socket.AF_INET6
        return socket.inet_ntop(family, ip[12:] if family == socket.AF_INET else ip), address.port
