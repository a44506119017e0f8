# SPDX-License-Identifier: Apache-2.0
"""A Memcached server for tests, on a unix socket: tests can freeze, kill and restart it."""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile

from proc import wait_until

PROGRAM = shutil.which("memcached")


class Memcached:
    def __init__(self, *options):
        # A socket path has at most 107 bytes, too few for a path in the folder of the test.
        self.folder = tempfile.mkdtemp(prefix="mk-mc-")
        self.socket = f"{self.folder}/memcached.sock"
        self.options = options
        self.start()

    def start(self):
        user = ["-u", "root"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen([PROGRAM, "-s", self.socket, "-t", "1", *user, *self.options],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        wait_until(lambda: self.ask("mn") == b"MN\r\n", "Memcached responds")

    def ask(self, command):
        """Returns the first bytes of the reply to a command, or b"" if no server responds."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(self.socket)
            s.sendall(command.encode() + b"\r\n")
            return s.recv(4096)
        return b""

    def kill(self):
        self.process.kill()
        self.process.wait()

    def freeze(self):
        """Stops the process, and waits until all its threads are stopped."""
        self.process.send_signal(signal.SIGSTOP)
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        wait_until(lambda: all(task.joinpath("stat").read_text().rpartition(")")[2].split()[0] == "T" for task in tasks.iterdir()),
                   "Memcached is frozen")

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        if self.process.poll() is None:
            self.thaw()
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
