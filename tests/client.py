# SPDX-License-Identifier: Apache-2.0
"""A low-level HTTP/1 client that sends exactly the given bytes and parses responses strictly.

Every response is checked against the general rules of RFC 9110 and 9112; a violation raises BadReply. A missing response raises
TimeoutError, so that no test hangs. http2.py has a client with the same methods for HTTP/2.
"""
import re
import socket
from email.utils import parsedate_to_datetime

from sockets import dial

TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-5]\d\d) ([\t\x20-\x7e]*)")
FIELD_LINE = re.compile(rb"(" + TOKEN + rb"):[ \t]*((?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*"
                        rb"[\x21-\x7e\x80-\xff])?)?)[ \t]*")
CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[^\r\n]*)?")
DATE = re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} "
                  r"\d\d:\d\d:\d\d GMT")
SECONDS = 30  # timeout of each socket operation
SERVERS = ("Monkey", "Origin", "gunicorn", "uvicorn", "Python")  # Server headers: ours, and those of backends behind a gateway


class BadReply(AssertionError):
    """The server violated the protocol."""


class Closed(BadReply):
    """The connection or stream ended before the response was complete. `code` is the HTTP/2 error code; `again` means that the
    server has not processed the request, so a retry is safe."""

    def __init__(self, text, code=None, again=False):
        super().__init__(text)
        self.code, self.again = code, again


class Reply:
    """One final response. `reply["ETag"]` is the value of a header that must occur once; `reply.all(name)` lists all values."""

    def __init__(self, head):
        self.head = head
        lines = head.split(b"\r\n")
        match = STATUS_LINE.fullmatch(lines[0])
        if not match:
            raise BadReply(f"not a status line: {lines[0]!r}")
        self.status, self.reason = int(match[1]), match[2].decode()
        self.fields = [parse_field(line) for line in lines[1:]]
        self.body, self.trailers = b"", []
        self.interim = []  # 1xx responses before the final one
        self.framing = None  # "none", "length", "chunked", "close", or "frames" for HTTP/2

    def all(self, name):
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def get(self, name, default=None):
        values = self.all(name)
        if len(values) > 1:
            raise BadReply(f"{name} is there {len(values)} times: {values}")
        return values[0] if values else default

    def __getitem__(self, name):
        value = self.get(name)
        assert value is not None, f"no {name} in\n{self.head.decode('latin-1')}"
        return value

    def __contains__(self, name):
        return bool(self.all(name))

    def tokens(self, name):
        """The members of a comma-separated list, in lower case."""
        return [part.strip().lower() for value in self.all(name) for part in value.split(",") if part.strip()]

    @property
    def closes(self):
        """Does the response announce that the connection closes after this response?"""
        return "close" in self.tokens("Connection")

    @property
    def text(self):
        return self.body.decode()

    def __repr__(self):
        return f"<{self.status} {self.reason}, {len(self.body)} bytes>"


def parse_field(line):
    match = FIELD_LINE.fullmatch(line)
    if not match:
        raise BadReply(f"not a field line: {line!r}")
    return match[1].decode(), match[2].decode("latin-1")


def check_head(reply):
    """Checks that the response head obeys the rules for all responses of an origin server with a clock."""
    if 100 <= reply.status < 200:
        assert not reply.all("Content-Length") and not reply.all("Transfer-Encoding"), reply.head
        return
    if reply.status < 500 or "Date" in reply:
        assert DATE.fullmatch(reply["Date"]) and parsedate_to_datetime(reply["Date"]), reply["Date"]
        assert reply["Server"].startswith(SERVERS), reply["Server"]
    for name in ("Content-Length", "Transfer-Encoding", "Content-Type", "Content-Range", "ETag", "Last-Modified",
                 "Location", "Content-Encoding", "Connection"):
        reply.get(name)
    assert not ("Content-Length" in reply and "Transfer-Encoding" in reply), reply.head
    if "Content-Length" in reply:
        assert re.fullmatch(r"\d+", reply["Content-Length"]), reply.head
    if reply.status == 204:
        assert "Content-Length" not in reply and "Transfer-Encoding" not in reply, reply.head
    if reply.status == 206:
        assert "Content-Range" in reply or reply["Content-Type"].startswith("multipart/byteranges"), reply.head
    if reply.status == 405:
        assert "Allow" in reply, reply.head
    if reply.status in (301, 302, 303, 307, 308):
        assert "Location" in reply, reply.head


class Client:
    """A connection. `c.send(b"GET ...")`, `c.read()`, `c.expect_end()`."""

    def __init__(self, address, seconds=SECONDS, receive_buffer=None, source=None, tls=None,
                 server_name="localhost"):
        self.sock = dial(address, seconds, receive_buffer, source, tls, server_name)
        if tls and self.sock.protocol not in ("http/1.1", None):
            raise BadReply(f"it offered HTTP/1.1 and got {self.sock.protocol}")
        self.got = bytearray()
        self.ended = False
        self.last_method, self.chunked = "GET", False  # method and framing of the last request

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    # Sending

    def send(self, data):
        self.sock.sendall(data)
        return self

    def send_slowly(self, data):
        """Sends each byte in its own packet."""
        if self.sock.family != socket.AF_UNIX:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(data)):
            self.sock.sendall(data[at:at + 1])
        return self

    def shut(self):
        """Half-closes: sends no more."""
        self.sock.shutdown(socket.SHUT_WR)
        return self

    def ask(self, target="/", method="GET", fields=(), body=b"", version="1.1", host="localhost", streamed=False):
        """Sends one request. `fields` is a dict or a list of pairs; Host and Content-Length are added if absent. With
        `streamed`, more() and done() send a body of unknown length."""
        fields = list(fields.items() if isinstance(fields, dict) else fields)
        self.chunked = streamed
        if streamed:
            fields.append(("Transfer-Encoding", "chunked"))
        names = {name.lower() for name, _ in fields}
        if "host" not in names and host is not None:
            fields.insert(0, ("Host", host))
        if body and not names & {"content-length", "transfer-encoding"}:
            fields.append(("Content-Length", str(len(body))))
        head = f"{method} {target} HTTP/{version}\r\n" + "".join(f"{n}: {v}\r\n" for n, v in fields) + "\r\n"
        self.last_method = method
        return self.send(head.encode("latin-1") + body)

    def more(self, data):
        """Sends a piece of the last request's body, which is streamed or has a declared length."""
        return self.send(b"%x\r\n%b\r\n" % (len(data), data) if self.chunked else data)

    def done(self, trailers=()):
        """Ends a streamed body."""
        return self.send(b"0\r\n" + b"".join(f"{n}: {v}\r\n".encode("latin-1") for n, v in trailers) + b"\r\n")

    # Reading

    def fill(self):
        """Waits for more bytes; returns false at the end of the connection."""
        if self.ended:
            return False
        data = self.sock.recv(1 << 18)
        self.ended = not data
        self.got += data
        return bool(data)

    def begin(self):
        """Waits for the first bytes of a response."""
        self.fill()
        return self

    def take(self, size):
        out = bytes(self.got[:size])
        del self.got[:size]
        return out

    def read_until(self, mark, limit=1 << 20):
        at = 0
        while (found := self.got.find(mark, max(0, at - len(mark)))) < 0:
            at = len(self.got)
            if at > limit:
                raise BadReply(f"no {mark!r} in {at} bytes")
            if not self.fill():
                raise Closed(f"the connection ended: {bytes(self.got)!r}")
        data = self.take(found)
        self.take(len(mark))
        return data

    def read_exactly(self, size):
        parts, left = [], size
        while left:
            if not self.got and not self.fill():
                raise Closed(f"the connection ended {left} bytes before the end of {size}")
            part = self.take(left)
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def read_to_end(self):
        while self.fill():
            pass
        return self.take(len(self.got))

    def read_head(self):
        reply = Reply(self.read_until(b"\r\n\r\n"))
        check_head(reply)
        return reply

    def read_interim(self):
        """Reads one 1xx response."""
        reply = self.read_head()
        assert 100 <= reply.status < 200, reply.head
        return reply

    def read(self, method=None):
        """Reads the next final response with its whole body."""
        method = method or self.last_method
        interim = []
        while (reply := self.read_head()).status < 200:
            interim.append(reply)
        reply.interim = interim
        if method == "HEAD" or reply.status in (204, 304):
            reply.framing = "none"
        elif "Transfer-Encoding" in reply:
            assert reply.tokens("Transfer-Encoding") == ["chunked"], reply.head
            reply.framing = "chunked"
            self.read_chunks(reply)
        elif "Content-Length" in reply:
            reply.framing = "length"
            reply.body = self.read_exactly(int(reply["Content-Length"]))
        else:
            reply.framing = "close"
            reply.body = self.read_to_end()
        return reply

    def read_chunks(self, reply):
        body = bytearray()
        while True:
            match = CHUNK_LINE.fullmatch(self.read_until(b"\r\n"))
            if not match:
                raise BadReply("not a chunk size")
            size = int(match[1], 16)
            if size == 0:
                break
            body += self.read_exactly(size)
            if self.read_exactly(2) != b"\r\n":
                raise BadReply("a chunk does not end with CRLF")
        reply.body = bytes(body)
        while line := self.read_until(b"\r\n"):
            reply.trailers.append(parse_field(line))

    def get(self, target="/", method="GET", fields=(), body=b"", **how):
        """Sends a request and reads the response."""
        return self.ask(target, method, fields, body, **how).read(method)

    def expect_end(self):
        """The server must close cleanly, without a reset, and send nothing more."""
        rest = self.read_to_end()
        assert not rest, f"more than was due: {rest[:200]!r}"
        return self

    def is_open(self):
        """Can the connection carry another request?"""
        reply = self.get("/", method="OPTIONS")
        return reply.status in (200, 204)
