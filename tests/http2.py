# SPDX-License-Identifier: Apache-2.0
"""An HTTP/2 client with the methods of client.py, and equally strict: every violation of RFC 9113 raises BadReply, and so does
any behavior that a careful server avoids.

    with server.connect(...) as c:
        c.ask("/a").ask("/b")                 two streams
        assert c.read().status == 200         the response to /a, even if the response to /b came first
        c.ask("/c"); c.stream.number; c.wait(lambda: c.stream.final)

The client acknowledges SETTINGS and PING. It sends WINDOW_UPDATE as soon as DATA arrives; with `receive_buffer` it is a slow
client with the smallest windows, which sends WINDOW_UPDATE only for data that the test has read.
"""
import re
import select
import struct

from hpack import Decoder, Encoder
from hpack.exceptions import HPACKError

import h2frames as h2
from client import SECONDS, BadReply, Closed, Reply, check_head
from sockets import dial

NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")
VALUE = re.compile(rb"(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?")
OF_CONNECTIONS = {"connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade", "te", "http2-settings"}
LARGE_WINDOW = 1 << 20


def check(holds, text):
    if not holds:
        raise BadReply(text)


class Http2Reply(Reply):
    """One interim or final response."""

    def __init__(self, client, pairs):
        self.head = "".join(f"{n}: {v}\n" for n, v in pairs).encode("latin-1")
        self._client = client
        check(pairs and pairs[0][0] == ":status", f"a head without :status at its beginning: {pairs}")
        check(re.fullmatch(r"[1-5]\d\d", pairs[0][1]), f"not a status: {pairs[0][1]!r}")
        self.status, self.reason, self.fields = int(pairs[0][1]), "", check_fields(pairs[1:])
        check(self.status != 101, "101 is of HTTP/1")
        self.body, self.trailers, self.interim, self.framing = b"", [], [], "frames"

    @property
    def closes(self):
        """Has the server sent GOAWAY?"""
        return self._client.goaway is not None


def check_fields(pairs):
    for name, value in pairs:
        check(NAME.fullmatch(name.encode("latin-1")), f"not a field name: {name!r}")
        check(VALUE.fullmatch(value.encode("latin-1")), f"not a value of {name}: {value!r}")
        check(name not in OF_CONNECTIONS, f"{name} is of HTTP/1 connections")
    return pairs


class Stream:
    """A request and its response."""

    def __init__(self, number, method, window, send_window):
        self.number, self.method = number, method
        self.window, self.send_window = window, send_window  # bytes that the server and the client may send
        self.heads = []  # heads that the test has not read
        self.final = None  # head of the final response
        self.body, self.received, self.trailers = bytearray(), 0, []
        self.unreturned, self.unannounced = 0, 0  # bytes not yet returned to the window; returned but not yet announced
        self.ended = False  # the server has ended the stream
        self.reset = None  # the server's error code
        self.left, self.finished, self.at_once = None, False, False  # request body: bytes left; complete; sent with HEADERS
        self.cancelled = False  # the client has reset the stream

    @property
    def is_over(self):
        return self.ended or self.reset is not None or self.cancelled

    def __repr__(self):
        return f"<stream {self.number} {self.final} {self.received} bytes{', ended' * self.ended} {self.reset or ''}>"


class Http2Client:
    def __init__(self, address, seconds=SECONDS, receive_buffer=None, source=None, tls=None, settings=None, hello=True):
        self.sock = dial(address, seconds, receive_buffer, source, tls)
        check(not tls or self.sock.protocol == "h2", f"ALPN chose {getattr(self.sock, 'protocol', None)}")
        self.slow, self.scheme = bool(receive_buffer), "https" if tls else "http"
        self.encoder, self.decoder = Encoder(), Decoder()
        self.decoder.max_header_list_size = 1 << 20
        self.got, self.ended = bytearray(), False
        self.streams, self.live, self.queue = {}, [], []  # all; counted in the stream limit; unread responses
        self.stream = self.current = None  # the stream opened last; the stream being read
        self.next_number = 1
        self.theirs = {}  # the server's SETTINGS
        self.settings_received, self.unacknowledged, self.acknowledged = False, [], 0
        self.window, self.send_window, self.unreturned, self.unannounced = h2.WINDOW, h2.WINDOW, 0, 0  # as in Stream, for the connection
        self.first_window = h2.WINDOW  # the initial send window of new streams
        self.block = None  # (stream, flags, bytes) of an unfinished header block
        self.pings, self.goaways = [], []
        self.frames = []  # (type, flags, stream, length) of every received frame
        if hello:
            self.hello({} if self.slow else {h2.INITIAL_WINDOW: LARGE_WINDOW}, settings or {})

    def hello(self, *settings):
        """The connection preface of a client."""
        values = {h2.ENABLE_PUSH: 0}
        for each in settings:
            values |= each
        self.send(h2.PREFACE)
        self.change(values)
        if not self.slow:
            self.give(0, 16 * LARGE_WINDOW)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    # Sending

    def send(self, data):
        """Sends raw bytes and receives at the same time, so that neither side blocks the other."""
        view, poll = memoryview(data), select.poll()
        while view:
            poll.register(self.sock, select.POLLOUT | (0 if self.slow or self.ended else select.POLLIN))
            timeout = self.sock.gettimeout()
            events = poll.poll(None if timeout is None else timeout * 1000)
            if not events:
                raise TimeoutError("the server does not take more")
            if events[0][1] & select.POLLIN:
                self.fill()
            if events[0][1] & ~select.POLLIN:
                view = view[self.sock.send(view):]
        if flush := getattr(self.sock, "flush", None):
            flush()
        return self

    def change(self, values):
        """Sends the client's SETTINGS. They take effect when the server acknowledges them, but larger limits at
        once, because the server may use them before its acknowledgment arrives."""
        self.unacknowledged.append(dict(values))
        if h2.TABLE_SIZE in values:
            self.decoder.max_allowed_table_size = max(self.decoder.max_allowed_table_size, values[h2.TABLE_SIZE])
        if (window := values.get(h2.INITIAL_WINDOW)) is not None and window > self.first_window:
            self.resize(window)
        return self.send(h2.settings(values))

    def resize(self, window):
        for stream in self.streams.values():
            stream.window += window - self.first_window
        self.first_window = window

    def give(self, stream, more):
        """Sends WINDOW_UPDATE for the server's data."""
        if stream == 0:
            self.window += more
        elif stream in self.streams:
            self.streams[stream].window += more
        return self.send(h2.window_update(stream, more))

    def ping(self, payload=b"monkeys!"):
        self.pings.append(payload)
        return self.send(h2.ping(payload))

    def cancel(self, stream=None, code="CANCEL"):
        stream = stream or self.stream
        stream.cancelled = True
        return self.send(h2.rst_stream(stream.number, code))

    def ask(self, target="/", method="GET", fields=(), body=b"", version=None, host="localhost", streamed=False, **pseudo):
        """Opens a stream. `fields` as in client.py, in lower case. Unless `streamed`, the stream ends with the body, or after
        Content-Length bytes of more() if that header is given. `pseudo`: scheme="ftp", protocol="websocket" ..."""
        assert version in (None, "1.1"), "HTTP/2 requests have no version"
        fields = [(n.lower(), v) for n, v in (fields.items() if isinstance(fields, dict) else fields)]
        names = {name for name, _ in fields}
        if "host" in names:  # as in HTTP/1, a given Host header replaces the default one
            host = next(value for name, value in fields if name == "host") if host is not None else None
            fields = [f for f in fields if f[0] != "host" or host is None]
        if body and not streamed and "content-length" not in names:
            fields.append(("content-length", str(len(body))))
        length = next((int(v) for n, v in fields if n == "content-length" and v.isdigit()), len(body))
        first = {":method": method, ":scheme": self.scheme, ":authority": host, ":path": target}
        if method == "CONNECT" and "protocol" not in pseudo:
            first |= {":authority": target, ":scheme": None, ":path": None}
        first |= {f":{name}": value for name, value in pseudo.items()}
        pairs = [(n, v) for n, v in first.items() if v is not None] + fields
        self.open(pairs, end=not streamed and not length)
        self.stream.left = None if streamed else length
        return self.more(body) if body else self

    def open(self, pairs, end=True, block=None, anyway=False):
        """Opens a stream with exactly these header fields or these bytes, as soon as the server's stream limit allows it, or at
        once if `anyway`."""
        self.wait(lambda: anyway or self.active < self.theirs.get(h2.STREAMS_MAX, 100))
        if self.goaway and not anyway:
            raise Closed("the server takes no more requests", self.goaway[1], again=True)
        block = block if block is not None else self.encoder.encode([(n.encode("latin-1"), v.encode("latin-1"))
                                                                     for n, v in pairs])
        stream = Stream(self.next_number, dict(pairs).get(":method"), self.first_window,
                        self.theirs.get(h2.INITIAL_WINDOW, h2.WINDOW))
        stream.finished = stream.at_once = end
        self.next_number += 2
        self.streams[stream.number] = self.stream = stream
        self.live.append(stream)
        self.queue.append(stream)
        return self.send(h2.header_block(stream.number, block, end))

    @property
    def active(self):
        """The number of streams that count toward the server's limit."""
        self.live = [s for s in self.live if not s.is_over or not (s.finished or s.reset or s.cancelled)]
        return len(self.live)

    def more(self, data, stream=None):
        """Sends body bytes as fast as the windows allow, and drops the rest when the server stops reading."""
        stream, view = stream or self.stream, memoryview(data)
        while view:
            self.wait(lambda: min(stream.send_window, self.send_window) > 0 or stream.reset is not None or stream.ended)
            if stream.reset is not None or min(stream.send_window, self.send_window) <= 0:
                return self
            part = view[:min(stream.send_window, self.send_window, self.theirs.get(h2.FRAME_SIZE, h2.FRAME_MAX))]
            view = view[len(part):]
            stream.send_window -= len(part)
            self.send_window -= len(part)
            if stream.left is not None:
                stream.left -= len(part)
                stream.finished = stream.left == 0
            self.send(h2.data(stream.number, bytes(part), stream.finished))
        return self

    def done(self, trailers=(), stream=None):
        """Ends a streamed body."""
        stream = stream or self.stream
        stream.finished = True
        if trailers:
            pairs = [(n.lower().encode(), v.encode("latin-1")) for n, v in trailers]
            return self.send(h2.header_block(stream.number, self.encoder.encode(pairs)))
        return self.send(h2.data(stream.number, end=True))

    # Receiving

    def fill(self):
        """Receives bytes; returns false at the end of the connection."""
        if self.ended:
            return False
        data = self.sock.recv(1 << 18)
        self.ended = not data
        self.got += data
        return bool(data)

    def step(self):
        """Processes the received frames, or waits for more; returns false at the end."""
        while not self.next_frame():
            if not self.fill():
                check(not self.got, f"the connection ended within a frame: {bytes(self.got[:100])!r}")
                return False
        return True

    def wait(self, holds):
        """Waits until the condition holds."""
        while not holds():
            if not self.step():
                code = self.goaway[1] if self.goaway else None
                raise Closed(f"the connection ended: {self.goaways or 'without GOAWAY'}", code)
        return self

    def next_frame(self):
        if len(self.got) < h2.HEADER:
            return False
        size, kind, flags = int.from_bytes(self.got[:3], "big"), self.got[3], self.got[4]
        number = int.from_bytes(self.got[5:9], "big")
        check(size <= h2.FRAME_MAX, f"a frame of {size} bytes: {bytes(self.got[:60])!r}")
        if len(self.got) < h2.HEADER + size:
            return False
        payload = bytes(self.got[h2.HEADER:h2.HEADER + size])
        del self.got[:h2.HEADER + size]
        self.frames.append((kind, flags, number, size))
        self.meet(kind, flags, number, payload)
        return True

    def meet(self, kind, flags, number, payload):
        name = h2.KINDS.get(kind)
        check(name, f"a frame of type {kind:#x}")
        check(not flags & ~h2.FLAGS.get(kind, 0), f"{name} with flags {flags:#x}")
        check(number < 1 << 31, "the reserved bit is set")
        check(self.settings_received or (kind == h2.SETTINGS and not flags), f"the first frame is {name}")
        check(self.block is None or (kind == h2.CONTINUATION and number == self.block[0]), f"{name} within a head")
        if kind in (h2.SETTINGS, h2.PING, h2.GOAWAY):
            check(number == 0, f"{name} on stream {number}")
        elif kind != h2.WINDOW_UPDATE or number:
            check(number in self.streams, f"{name} on stream {number}, which we did not open")
        method = {h2.DATA: self.on_data, h2.HEADERS: self.on_headers, h2.RST_STREAM: self.on_reset,
                  h2.SETTINGS: self.on_settings, h2.PING: self.on_ping, h2.GOAWAY: self.on_goaway,
                  h2.WINDOW_UPDATE: self.on_window, h2.CONTINUATION: self.on_continuation}.get(kind)
        check(method, f"{name} from a server")
        method(flags, self.streams.get(number, number), payload)

    def unpad(self, flags, payload):
        if not flags & h2.PADDED:
            return payload
        check(payload and payload[0] < len(payload), "padding beyond the frame")
        check(not any(payload[len(payload) - payload[0]:]), "padding that is not zero")
        return payload[1:len(payload) - payload[0]]

    def on_data(self, flags, stream, payload):
        check(not stream.ended, f"DATA behind the end of {stream}")
        check(stream.reset is None, f"DATA behind the reset of {stream}")
        check(stream.final, f"DATA before the head of {stream}")
        self.window -= len(payload)
        stream.window -= len(payload)
        check(self.window >= 0, f"{-self.window} bytes too many for the connection")
        check(stream.window >= 0, f"{-stream.window} bytes too many for {stream}")
        content, ends = self.unpad(flags, payload), bool(flags & h2.END_STREAM)
        check(content or ends, f"an empty DATA frame that ends nothing, on {stream}")
        stream.received += len(content)
        check(not content or not (stream.method == "HEAD" or stream.final.status in (204, 304)),
              f"content that may not be, on {stream}")
        if not stream.cancelled:
            stream.body += content
        if ends:
            self.end(stream)
        stream.unreturned += len(payload)
        self.unreturned += len(payload)
        if not self.slow or stream.cancelled:
            self.give_back(stream, len(payload))

    def give_back(self, stream, size):
        """Returns `size` bytes to the windows; small amounts are collected. A stream window is updated before the connection
        window: otherwise the server could spend the connection window on a stream that the test does not read, and starve the
        stream that it reads."""
        size = min(size, stream.unreturned, self.unreturned)
        stream.unreturned -= size
        self.unreturned -= size
        stream.unannounced += size
        self.unannounced += size
        if self.unannounced < h2.WINDOW // 4:
            return
        for each in self.live:
            if each.unannounced and not each.is_over:
                self.give(each.number, each.unannounced)
                each.unannounced = 0
        self.give(0, self.unannounced)
        self.unannounced = 0

    def on_headers(self, flags, stream, payload):
        payload = self.unpad(flags, payload)
        check(not flags & h2.WITH_PRIORITY, "a priority from a server")
        check(not stream.ended, f"HEADERS behind the end of {stream}")
        check(stream.reset is None, f"HEADERS behind the reset of {stream}")
        self.block = (stream.number, flags, payload)
        if flags & h2.END_HEADERS:
            self.on_block()

    def on_continuation(self, flags, stream, payload):
        check(self.block, "CONTINUATION of nothing")
        check(payload, "an empty CONTINUATION")
        self.block = (self.block[0], self.block[1], self.block[2] + payload)
        if flags & h2.END_HEADERS:
            self.on_block()

    def on_block(self):
        number, flags, block = self.block
        self.block, stream = None, self.streams[number]
        try:
            pairs = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in self.decoder.decode(block, raw=True)]
        except HPACKError as error:
            raise BadReply(f"HPACK: {error!r}: {block!r}") from error
        ends = bool(flags & h2.END_STREAM)
        if stream.final:
            check(ends, "a second head that does not end the stream")
            check(pairs, "trailers without fields")
            stream.trailers = check_fields(pairs)
            return self.end(stream)
        reply = Http2Reply(self, pairs)
        check_head(reply)
        check(not ends or reply.status >= 200, f"{reply.status} ends the stream")
        stream.heads.append(reply)
        if reply.status >= 200:
            stream.final = reply
            if ends:
                self.end(stream)

    def end(self, stream):
        stream.ended = True
        reply = stream.final
        if stream.method == "HEAD" or reply.status in (204, 304):
            reply.framing = "none"
        elif "Content-Length" in reply:
            reply.framing = "length"
            check(int(reply["Content-Length"]) == stream.received,
                  f"content-length {reply['Content-Length']}, but {stream.received} bytes")

    def on_reset(self, flags, stream, payload):
        check(len(payload) == 4, f"RST_STREAM of {len(payload)} bytes")
        check(stream.reset is None, f"a second reset of {stream}")
        check(not (stream.ended and stream.at_once), f"a reset of {stream}, which is over")
        code = h2.error_name(struct.unpack(">I", payload)[0])
        check(code != "NO_ERROR" or stream.ended or stream.cancelled, "NO_ERROR before the end of an answer")
        stream.reset = code

    def on_settings(self, flags, _, payload):
        check(len(payload) % 6 == 0, f"SETTINGS of {len(payload)} bytes")
        if flags & h2.ACK:
            check(not payload, "an acknowledgement that says something")
            check(self.unacknowledged, "an acknowledgement of nothing")
            return self.acknowledge(self.unacknowledged.pop(0))
        self.settings_received = True
        for name, value in h2.pairs_of(payload):
            self.on_setting(name, value)
        self.send(h2.settings(ack=True))

    def acknowledge(self, values):
        self.acknowledged += 1
        if h2.INITIAL_WINDOW in values:
            self.resize(values[h2.INITIAL_WINDOW])
        if h2.TABLE_SIZE in values:
            self.decoder.max_allowed_table_size = values[h2.TABLE_SIZE]

    def on_setting(self, name, value):
        before = self.theirs.get(name)
        if name == h2.ENABLE_PUSH:
            check(value == 0, "a server that wants to be pushed to")
        elif name == h2.INITIAL_WINDOW:
            check(value <= h2.WINDOW_MAX, f"a window of {value}")
            for stream in self.streams.values():
                stream.send_window += value - (h2.WINDOW if before is None else before)
        elif name == h2.FRAME_SIZE:
            check(h2.FRAME_MAX <= value < 1 << 24, f"frames of {value}")
        elif name in (h2.CONNECT_PROTOCOL, h2.NO_OLD_PRIORITIES):
            check(value in (0, 1) and (not before or value == 1), f"setting {name} from {before} to {value}")
        elif name == h2.TABLE_SIZE:
            self.encoder.header_table_size = min(value, 4096)
        self.theirs[name] = value

    def on_ping(self, flags, _, payload):
        check(len(payload) == 8, f"PING of {len(payload)} bytes")
        if not flags & h2.ACK:
            return self.send(h2.ping(payload, ack=True))
        check(payload in self.pings, f"an echo of no PING: {payload!r}")
        self.pings.remove(payload)

    def on_goaway(self, flags, _, payload):
        check(len(payload) >= 8, f"GOAWAY of {len(payload)} bytes")
        last, code = struct.unpack(">II", payload[:8])
        check(last < 1 << 31, "the reserved bit is set")
        check(last == h2.WINDOW_MAX or last % 2 == 1 or last == 0, f"GOAWAY up to stream {last}")
        check(not self.goaways or last <= self.goaways[-1][0], f"GOAWAY from {self.goaways} up to {last}")
        self.goaways.append((last, h2.error_name(code), payload[8:]))

    @property
    def goaway(self):
        """(last stream, error name, debug text) of the last GOAWAY."""
        return self.goaways[-1] if self.goaways else None

    def on_window(self, flags, stream, payload):
        check(len(payload) == 4, f"WINDOW_UPDATE of {len(payload)} bytes")
        more = struct.unpack(">I", payload)[0]
        check(0 < more < 1 << 31, f"a window that grows by {more}")
        whose = self if stream == 0 else stream
        check(whose is self or not stream.at_once, f"window for {stream}, which has ended")
        check(whose is self or stream.reset is None, f"window for {stream} after its reset")
        whose.send_window += more
        check(whose.send_window <= h2.WINDOW_MAX, f"a window of {whose.send_window}")

    # Reading

    def need(self, stream, holds):
        """Waits for an event of a stream; raises if the event can no longer occur."""
        def refused():
            return self.goaway and self.goaway[0] < stream.number

        self.wait(lambda: holds() or stream.is_over or refused())
        if holds():
            return
        if stream.reset is not None:
            raise Closed(f"{stream} was reset", stream.reset, again=stream.reset == "REFUSED_STREAM")
        if not stream.is_over:
            raise Closed(f"{self.goaway} before {stream}", self.goaway[1], again=True)
        raise Closed(f"{stream} is over")

    def next_head(self):
        assert self.queue, "no request was sent"
        stream = self.queue[0]
        self.need(stream, lambda: stream.heads)
        return stream, stream.heads.pop(0)

    def begin(self):
        """Waits for the first body bytes of the oldest stream with an unread response."""
        stream = self.queue[0]
        self.need(stream, lambda: stream.body or stream.ended)
        return self

    def read_head(self):
        """Reads the next head of the oldest stream with an unread response; read_exactly() then reads the body."""
        stream, reply = self.next_head()
        if reply.status >= 200:
            self.current = self.queue.pop(0)
        return reply

    def read_interim(self):
        reply = self.read_head()
        assert 100 <= reply.status < 200, reply.head
        return reply

    def read(self, method=None, stream=None):
        """Reads the next complete final response of `stream` or of the oldest stream with an unread response."""
        if stream is None:
            assert self.queue, "no request was sent"
            stream = self.queue[0]
        self.queue.remove(stream)
        self.current = stream
        try:
            self.drain(stream)
        except Closed:
            self.current = None
            raise
        reply = stream.final
        reply.interim = [head for head in stream.heads if head is not reply]
        reply.body, reply.trailers = bytes(stream.body), stream.trailers
        return reply

    def drain(self, stream):
        """Receives until the end of a stream. The test does not read meanwhile, so the body bytes are returned to the
        windows on arrival."""
        def ended():
            if stream.unreturned:
                self.give_back(stream, stream.unreturned)
            return stream.ended

        self.need(stream, ended)

    def take(self, size):
        out = bytes(self.current.body[:size])
        del self.current.body[:size]
        if self.slow:
            self.give_back(self.current, len(out))
        return out

    def read_some(self, most=1 << 20):
        """Reads from the body of the current stream; returns nothing at its end."""
        stream = self.current
        self.need(stream, lambda: stream.body or stream.ended)
        return self.take(most)

    def read_exactly(self, size):
        parts, left = [], size
        while left:
            part = self.read_some(left)
            if not part:
                raise Closed(f"{self.current} ended {left} bytes before the end of {size}")
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def read_rest(self):
        """Reads the rest of the current stream's body."""
        return b"".join(iter(self.read_some, b""))

    def get(self, target="/", method="GET", fields=(), body=b"", **how):
        """Sends a request and reads the response."""
        return self.ask(target, method, fields, body, **how).read(stream=self.stream)

    def end_of_connection(self):
        """Waits for the end of the connection; returns the name of the server's error code, or None without a GOAWAY."""
        while self.step():
            pass
        return self.goaway[1] if self.goaway else None

    def expect_end(self, code="NO_ERROR"):
        """Expects the server to close cleanly with a GOAWAY of this code."""
        before = len(self.frames)
        found = self.end_of_connection()
        assert found == code, f"{self.goaways}, not {code}"
        rest = [f for f in self.frames[before:] if f[0] in (h2.DATA, h2.HEADERS)]
        assert not rest, f"more than was due: {rest}"
        return self

    def is_open(self):
        """Can the connection carry another request?"""
        return self.get("/", method="OPTIONS").status in (200, 204)
