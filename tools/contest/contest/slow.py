# SPDX-License-Identifier: Apache-2.0
"""Slow clients: half of them send a request some bytes at a time, the others read a large answer a little at a time. They
make a new connection whenever one ends, and never end by themselves. Each has its own instant within a tick, so that they
never keep the core of the client that measures for long: less than a hundredth of the time.

    python -m contest.slow PORT NUMBER PATH LARGE_PATH

Prints a line as soon as all have tried to connect.
"""
import contextlib
import socket
import subprocess
import sys
import time
from pathlib import Path

TICK_SECONDS = 2
DRIP = 20  # bytes that a slow writer sends at once
SIP = 40960  # what a slow reader takes at once
SETTLE_SECONDS = 1.5  # until the buffers of the slow readers are full, and it is slowness alone that counts


class Client:
    """One of them; `step` is its turn."""

    def __init__(self, port, path, reads):
        self.port, self.reads = port, reads
        self.request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
        self.sock, self.sent = None, 0

    def connect(self):
        self.sock, self.sent = socket.socket(), 0
        if self.reads:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            self.sock.connect(("127.0.0.1", self.port))

    def drop(self):
        if self.sock:
            self.sock.close()
            self.sock = None

    def _write(self):
        if self.sent == len(self.request):
            return
        part = self.request[self.sent:] if self.reads else self.request[self.sent:self.sent + DRIP]
        self.sent += self.sock.send(part)

    def step(self):
        try:
            if not self.sock:
                self.connect()
            with contextlib.suppress(BlockingIOError):
                self._write()
            with contextlib.suppress(BlockingIOError):
                if not self.sock.recv(SIP):
                    self.drop()
                elif not self.reads:
                    self.sent = 0  # the next request on the same connection
        except OSError:
            self.drop()


def dribble(port, number, path, large):
    clients = [Client(port, large if i % 2 else path, bool(i % 2)) for i in range(number)]
    for client in clients:
        client.step()
    print("ready", flush=True)
    due = time.monotonic()
    while True:
        for client in clients:
            due += TICK_SECONDS / number
            time.sleep(max(0, due - time.monotonic()))
            client.step()


@contextlib.contextmanager
def beside(port, number, path, large, cores):
    """They are at it within the block."""
    command = ["taskset", "-c", ",".join(map(str, cores)), sys.executable, "-m", "contest.slow", str(port), str(number),
               path, large]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          cwd=Path(__file__).resolve().parents[1], start_new_session=True) as process:
        try:
            process.stdout.readline()
            time.sleep(SETTLE_SECONDS)
            yield process.pid
        finally:
            process.kill()


if __name__ == "__main__":
    dribble(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:5])
