# SPDX-License-Identifier: Apache-2.0
"""Slow clients: half of them send a request a few bytes at a time, the others read a large response a little at a time. They
reconnect whenever a connection ends, and never stop. Each has its own offset within a tick, so that they never occupy the core of
the measuring client for long: less than 1 % of the time.

    python -m contest.slow PORT NUMBER PATH LARGE_PATH

Prints a line when all clients have tried to connect.
"""
import contextlib
import socket
import subprocess
import sys
import time
from pathlib import Path

TICK_SECONDS = 2
DRIP = 20  # bytes per write of a slow writer
SIP = 40960  # bytes per read of a slow reader
SETTLE_SECONDS = 1.5  # by then the buffers of the slow readers are full, so they read only at their own slow rate


class Client:
    """One slow client; `step` does its next write or read."""

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
                    self.sent = 0  # next request on the same connection
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
    """Runs the slow clients within the block."""
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
