# SPDX-License-Identifier: Apache-2.0
"""A peer that never stops sending must not block a worker's other clients."""
import contextlib
import socket
import threading

import pytest


class Flood:
    """Sends `beginning` once, then `more` again and again until stop() or until the server closes the connection."""

    def __init__(self, server, beginning, more):
        self.client = server.connect()
        self.client.send(beginning)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(more,))
        self.thread.start()

    def run(self, more):
        try:
            while not self.stopped.is_set():
                self.client.sock.sendall(more)
        except OSError:
            pass

    def stop(self):
        self.stopped.set()
        with contextlib.suppress(OSError):  # the server may have closed the connection already
            self.client.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join(timeout=10)
        assert not self.thread.is_alive()
        self.client.sock.close()


FLOODS = {
    # The response is sent at once, and the request body never ends: the server lingers.
    "content": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000000\r\n\r\n", b"x" * 65536),
    "chunks": (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", b"8000\r\n" + b"x" * 0x8000 + b"\r\n"),
    "garbage": (b"\x00", b"\x00" * 65536),
    # The client does not read the small responses to its requests: soon the socket buffers are full.
    "requests": (b"", b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" * 500),
}


@pytest.mark.http1
@pytest.mark.parametrize("kind", FLOODS)
def test_flooding_peers_do_not_starve_other_clients(monkey, site, kind):
    site.add("index.html", b"here")
    server = monkey(server="KeepAliveRequests unlimited\nLingerTimeout 1")
    floods = [Flood(server, *FLOODS[kind]) for _ in range(3)]
    try:
        for _ in range(30):
            with server.connect() as c:
                c.ask("/")
                assert c.read().body == b"here"
    finally:
        for flood in floods:
            flood.stop()
