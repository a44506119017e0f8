# SPDX-License-Identifier: Apache-2.0
"""A scripted HTTP/1.1 backend: it records the requests and sends the bytes that the test gives it."""
import contextlib
import json
import socket
import threading
from dataclasses import dataclass, field

SECONDS = 20


@dataclass
class Request:
    method: str
    target: str
    fields: list
    body: bytes = b""
    trailers: list = field(default_factory=list)
    connection: int = 0  # index of the connection

    def all(self, name):
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def get(self, name):
        values = self.all(name)
        return values[0] if values else None


def response(body=b"hello", status="200 OK", fields=()):
    """A complete response with Content-Length."""
    body = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in fields), f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def echo(request):
    """Returns the request as JSON."""
    return response(json.dumps({"method": request.method, "target": request.target, "fields": request.fields,
                                "body": request.body.decode("latin-1"), "connection": request.connection}),
                    fields=[("Content-Type", "application/json")])


class Backend:
    """`reply(request)` returns bytes or an iterable of byte pieces; None closes the connection. If `script` is given,
    `script(connection)` reads from and writes to the socket instead."""

    def __init__(self, reply=echo, script=None, family=socket.AF_INET, at=None):
        self.reply, self.script, self.requests = reply, script, []
        self.listening = socket.socket(family, socket.SOCK_STREAM)
        if family == socket.AF_INET:
            self.listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listening.bind(at or ("127.0.0.1", 0))
        self.listening.listen(128)
        self.at = self.listening.getsockname()
        self.connections, self.open = 0, set()
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    @property
    def address(self):
        if isinstance(self.at, str):
            return f"unix:{self.at}"
        return f"{self.at[0]}:{self.at[1]}" if self.listening.family == socket.AF_INET else f"127.0.0.1:{self.at[1]}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Stops listening and closes the open connections."""
        with contextlib.suppress(OSError):
            self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.drop()
        self.thread.join(SECONDS)

    def drop(self):
        with self.lock:
            for each in self.open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _accept(self):
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            connection.settimeout(SECONDS)
            with self.lock:
                self.connections += 1
                self.open.add(connection)
                number = self.connections
            threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, connection, number):
        with contextlib.suppress(OSError, EOFError), connection:
            if self.script:
                self.script(connection)
            else:
                self._answer_all(connection, number)
        with self.lock:
            self.open.discard(connection)

    def _answer_all(self, connection, number):
        stream = connection.makefile("rb")
        while True:
            request = read_request(stream, connection)
            request.connection = number
            self.requests.append(request)
            reply = self.reply(request)
            if not reply:
                return
            for piece in [reply] if isinstance(reply, bytes) else reply:
                connection.sendall(piece)


def read_fields(stream):
    fields = []
    while line := stream.readline():
        if line in (b"\r\n", b"\n"):
            return fields
        name, _, value = line.decode("latin-1").partition(":")
        fields.append((name, value.strip()))
    raise EOFError


def end_of_stream():
    raise EOFError


def read_chunks(stream):
    body = b""
    while size := int((stream.readline() or end_of_stream()).split(b";")[0], 16):
        body += stream.read(size)
        stream.readline()
    return body, read_fields(stream)


def read_request(stream, connection):
    line = stream.readline()
    if not line:
        raise EOFError
    method, target, _ = line.decode("latin-1").split(" ", 2)
    request = Request(method, target, read_fields(stream))
    if request.get("Expect"):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    if request.get("Transfer-Encoding"):
        request.body, request.trailers = read_chunks(stream)
    else:
        request.body = stream.read(int(request.get("Content-Length") or 0))
    return request
