# SPDX-License-Identifier: Apache-2.0
"""A small SCGI server, written from the specification (python.ca/scgi/protocol.txt)."""
import json
import socket
import threading


def read_request(stream):
    """Returns the variables, in order, and the body."""
    length = b""
    while not length.endswith(b":"):
        each = stream.read(1)
        assert each, length
        length += each
    head = stream.read(int(length[:-1]))
    assert stream.read(1) == b","
    *parts, last = head.split(b"\0")
    assert last == b"" and len(parts) % 2 == 0
    names, values = ([each.decode("latin-1") for each in parts[i::2]] for i in (0, 1))
    assert names[0] == "CONTENT_LENGTH" and len(set(names)) == len(names)
    variables = dict(zip(names, values))
    assert variables["SCGI"] == "1"
    return variables, stream.read(int(variables["CONTENT_LENGTH"]))


def echo(variables, content):
    text = json.dumps({"variables": variables, "content": content.decode("latin-1")})
    return f"Status: 200 OK\r\nContent-Type: application/json\r\n\r\n{text}".encode()


class Program:
    """`answer(variables, content)` returns the bytes of a response."""

    read = staticmethod(read_request)

    def __init__(self, answer=echo):
        self.answer, self.requests = answer, []
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, connection.makefile("rb") as stream:
            variables, content = self.read(stream)
            self.requests.append(variables)
            try:
                connection.sendall(self.answer(variables, content))
            except OSError:
                pass  # the peer has disconnected

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
