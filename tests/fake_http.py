# SPDX-License-Identifier: Apache-2.0
"""A small HTTP server that misbehaves on request and counts the requests."""
import socket
import struct
import threading

SECONDS = 30


def answer(body=b"hello", status="200 OK", *fields):
    """Returns the bytes of a response with Content-Length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


RESET = object()  # instead of a response: resets the connection
CLOSE = object()  # instead of a response: closes the connection


class FakeServer:
    """Responds to the n-th request (counted from 1) with the result of `reply(n)`: bytes, or a list of bytes, RESET and CLOSE.
    As a context manager, it listens until the block ends."""

    def __init__(self, reply=lambda n: answer(), host="127.0.0.1"):
        self._reply, self._lock = reply, threading.Condition()
        self.count = self.n_connections = 0
        self._open, self.requests = set(), []
        self._listener = socket.create_server((host, 0), backlog=512)
        self.port = self._listener.getsockname()[1]
        self.url = f"http://{host}:{self.port}/x"

    def __enter__(self):
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.leave()

    def leave(self):
        """Stops listening and closes every connection."""
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        with self._lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def wait_for_count(self, count):
        with self._lock:
            assert self._lock.wait_for(lambda: self.count >= count, SECONDS), f"only {self.count} of {count} requests"

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.n_connections += 1
                self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            self._serve_requests(connection)
        except OSError:
            pass
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _serve_requests(self, connection):
        data = b""
        while True:
            while b"\r\n\r\n" not in data:
                more = connection.recv(65536)
                if not more:
                    return
                data += more
            head, _, data = data.partition(b"\r\n\r\n")
            with self._lock:
                self.count += 1
                n = self.count
                if n <= 100:
                    self.requests.append(head.decode("latin-1"))
                self._lock.notify_all()
            reply = self._reply(n)
            for part in reply if isinstance(reply, list) else [reply]:
                if part is RESET:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                if part is RESET or part is CLOSE:
                    return
                connection.sendall(part)
