# SPDX-License-Identifier: Apache-2.0
"""Connections of the test clients: plain, or over TLS with the same methods, which two threads may use at once."""
import contextlib
import random
import socket
import ssl
import threading
from pathlib import Path

RECORD = 16384
RESET = b"\1\0\0\0\0\0\0\0"  # SO_LINGER: on, 0 seconds


class Truncated(ConnectionError):
    """A TLS connection that ended without close_notify: the received data may be incomplete."""


def dial(address, seconds, receive_buffer=None, source=None, tls=None, server_name="localhost"):
    """Opens a connection; `tls` is an ssl.SSLContext or None."""
    family = {str: socket.AF_UNIX}.get(type(address)) or (socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
    sock = socket.socket(family, socket.SOCK_STREAM)
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.settimeout(seconds)
    try:
        if source:
            sock.bind((source, 0))  # on Linux, all of 127.0.0.0/8 is local
        sock.connect(address)
        if family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return TlsSocket(sock, tls, server_name) if tls else sock
    except BaseException:
        sock.close()
        raise


def free_port():
    """Returns a port on which no process listens. It is below the ephemeral range, so the kernel assigns it to no client."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    lowest, end = (10240, first) if first > 11240 else (1024, 65536)
    while True:
        with socket.socket() as s, contextlib.suppress(OSError):
            port = random.randrange(lowest, end)
            s.bind(("127.0.0.1", port))
            return port


def reset(sock):
    """Closes the socket so that the peer receives a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    getattr(sock, "raw", sock).close()


class TlsSocket:
    """A TLS socket. One thread may send while another one receives, which Python's own class does not allow."""

    def __init__(self, raw, context, server_name):
        self.raw = raw
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)  # some versions of Python set this option
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=server_name)
        self._state, self._order = threading.Lock(), threading.Lock()  # guards OpenSSL's object; guards the order of sent data
        self._unsent = b""
        self._held, self._ended = b"", False
        self.shake_hands()

    def __getattr__(self, name):  # settimeout, getsockname and similar methods
        return getattr(self.raw, name)

    @property
    def protocol(self):
        """Returns the protocol that ALPN selected, or None."""
        return self._tls.selected_alpn_protocol()

    @property
    def facts(self):
        """Returns version, cipher and certificate of this connection as an ssl.SSLObject."""
        return self._tls

    def shake_hands(self):
        while True:
            try:
                self._tls.do_handshake()
                return self._flush()
            except ssl.SSLWantReadError:
                self._flush()
                self._feed()
            except ssl.SSLEOFError:
                raise Truncated("the connection ended in its handshake") from None

    def _feed(self):
        data = self.raw.recv(1 << 16)
        with self._state:
            if data:
                self._in.write(data)
            else:
                self._in.write_eof()

    def _flush(self):
        """Sends pending bytes; only the holder of `_order` calls this. Bytes that cannot be sent now are kept."""
        with self._state:
            self._unsent += self._out.read()
        while self._unsent:
            self._unsent = self._unsent[self.raw.send(self._unsent):]

    def recv(self, size, flags=0):
        assert not flags, "not possible over TLS"
        while not self._ended:
            if self._held:
                data, self._held = self._held[:size], self._held[size:]
                return data
            try:
                with self._state:
                    data = self._tls.read(size)
                if data:
                    return data
                self._end()
            except ssl.SSLWantReadError:
                if self._out.pending and self._order.acquire(blocking=False):  # otherwise the sending thread sends the data
                    try:
                        self._flush()
                    finally:
                        self._order.release()
                self._feed()
            except ssl.SSLZeroReturnError:
                self._end()
            except ssl.SSLError as e:
                if not isinstance(e, ssl.SSLEOFError) and e.reason != "UNEXPECTED_EOF_WHILE_READING":  # Python 3.11.2
                    raise
                raise Truncated("the connection ended without close_notify") from None
        return b""

    def _end(self):
        """The peer has sent close_notify; only the end of the connection may follow."""
        assert not self.raw.recv(1), "data after close_notify"
        self._ended = True

    def send(self, data):
        """Like socket.send(), returns the number of accepted bytes."""
        with self._order:
            self._flush()
            part = bytes(data[:RECORD])
            with self._state:
                self._tls.write(part)
            with contextlib.suppress(BlockingIOError, TimeoutError):  # the bytes are accepted, and sent with the next call
                self._flush()
            return len(part)

    def sendall(self, data):
        view = memoryview(data)
        while view:
            view = view[self.send(view):]
        self.flush()

    def flush(self):
        """Waits until all accepted bytes are sent."""
        with self._order:
            self._flush()

    def _say_end(self):
        """Sends close_notify. Python's unwrap() would also read the peer's close_notify, and fail on data before it."""
        with contextlib.suppress(ssl.SSLError), self._state:
            while data := self._tls.read(RECORD):
                self._held += data
        with contextlib.suppress(ssl.SSLError), self._state:
            self._tls.unwrap()
        self._flush()

    def send_close_notify(self, data=b""):
        """Sends the data and close_notify together, and keeps the connection open: no FIN follows."""
        with self._order:
            if data:
                with self._state:
                    self._tls.write(data)
            self._say_end()

    def shutdown(self, how):
        if self._order.acquire(blocking=how == socket.SHUT_WR):  # else closing truncates data that another thread is sending
            try:
                self._say_end()
            except ConnectionError:
                pass
            finally:
                self._order.release()
        self.raw.shutdown(how)

    def close(self):
        if self.raw.fileno() >= 0 and self._order.acquire(blocking=False):
            try:
                self.raw.setblocking(False)
                self._say_end()
            except OSError:
                pass
            finally:
                self._order.release()
        self.raw.close()
