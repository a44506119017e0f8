# SPDX-License-Identifier: Apache-2.0
"""`monkey top` on a terminal."""
import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios

from monkey import ENVIRONMENT, PROGRAM
from proc import wait_until

ENTER, LEAVE = b"\033[?1049h", b"\033[?1049l"


class Terminal:
    """`monkey top` on a terminal."""

    def __init__(self, *options, columns=100, lines=20, **environment):
        self.master, slave = pty.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen([PROGRAM, "top", "--last", "1h", *options], stdin=slave, stdout=slave, stderr=slave, start_new_session=True, close_fds=True,
                                        env=os.environ | ENVIRONMENT | {"TERM": "xterm", "TZ": "UTC"} | environment)
        self.slave, self.got = slave, b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.slave)
        with contextlib.suppress(OSError):
            os.close(self.master)

    def resize(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, seconds=0.05):
        while select.select([self.master], [], [], seconds)[0]:
            self.got += os.read(self.master, 65536)
            seconds = 0
        return self.got

    def type(self, keys):
        self.got = b""
        os.write(self.master, keys)

    def wait_for(self, text):
        return wait_until(lambda: text in self.read(), f"{text!r} in {self.got!r}")

    def wait(self):
        wait_until(lambda: self.read() is not None and self.process.poll() is not None, "the end")
        self.read()
        return self.process.returncode

    def check_restored(self):
        assert self.got.count(LEAVE) == 1 and self.got.rstrip().endswith(LEAVE), self.got[-100:]
        assert b"\033[?25h" in self.got[-60:], "the cursor"
        assert termios.tcgetattr(self.slave) == self.before
