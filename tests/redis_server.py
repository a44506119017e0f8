# SPDX-License-Identifier: Apache-2.0
"""A Redis server of a test, in a folder of its own, on a unix socket: it can be frozen, killed and started again."""
import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile

from proc import wait_until

PROGRAM = shutil.which("redis-server")


class Redis:
    def __init__(self, *options):
        # The path of a socket has at most 107 bytes, so not in the folder of the test.
        self.folder = tempfile.mkdtemp(prefix="mk-redis-")
        self.socket = f"{self.folder}/redis.sock"
        self.options = options
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [PROGRAM, "--port", "0", "--unixsocket", self.socket, "--dir", self.folder, "--save", "", "--appendonly", "no",
             *self.options], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        wait_until(lambda: self.ask("PING") == b"+PONG\r\n" or self.ask("PING").startswith(b"-NOAUTH"), "Redis answers")

    def ask(self, *words):
        """The first bytes of the reply to a command; b"" when there is no server."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(self.socket)
            s.sendall(" ".join(words).encode() + b"\r\n")
            return s.recv(4096)
        return b""

    def kill(self):
        self.process.kill()
        self.process.wait()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        if self.process.poll() is None:
            self.thaw()
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
