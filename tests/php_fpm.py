# SPDX-License-Identifier: Apache-2.0
"""A real PHP-FPM with its own pool, on a unix socket, as the user who runs the test."""
import contextlib
import glob
import os
import shutil
import signal
import socket
import subprocess

from proc import wait_until

PROGRAM = next((path for path in (shutil.which("php-fpm"), *sorted(glob.glob("/usr/sbin/php-fpm*"), reverse=True)) if path),
               None)


class Fpm:
    """`with Fpm(folder, children=4) as fpm:`; routes use `fpm.address`. Tests may call stop() and start() repeatedly."""

    def __init__(self, folder, children=4, pool=""):
        self.socket, self.log = folder / "fpm.sock", folder / "fpm.log"
        self.address, self.process = f"unix:{self.socket}", None
        self._config = folder / "fpm.conf"
        self._config.write_text(f"[global]\nerror_log = {self.log}\ndaemonize = no\n[test]\nlisten = {self.socket}\n"
                                f"pm = static\npm.max_children = {children}\ncatch_workers_output = no\n"
                                f"php_admin_value[display_errors] = 0\nphp_admin_value[log_errors] = 1\n{pool}\n"
                                + ("user = root\n" if os.geteuid() == 0 else ""))

    def start(self):
        self.process = subprocess.Popen([PROGRAM, "-F", "-n", "-y", self._config] + ["-R"] * (os.geteuid() == 0),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: "ready to handle connections" in self.log.read_text(), "php-fpm serves")
        except AssertionError:
            self.stop()
            raise
        return self

    def children(self):
        text = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True).stdout
        return [int(pid) for pid in text.split()]

    def signal_all(self, number):
        """Signals the master and its children: SIGSTOP freezes the pool."""
        for pid in [self.process.pid, *self.children()]:
            with contextlib.suppress(ProcessLookupError):  # the child has just exited
                os.kill(pid, number)

    def _refuses(self):
        with socket.socket(socket.AF_UNIX) as sock:
            try:
                sock.connect(str(self.socket))
            except OSError:
                return True
        return False

    def stop(self):
        """Kills the processes immediately, as in a crash; the socket file remains."""
        if self.process is None:
            return
        os.kill(self.process.pid, signal.SIGSTOP)  # keeps the master from starting more children
        self.signal_all(signal.SIGKILL)
        self.process.wait()
        self.process = None
        wait_until(self._refuses, "the last child of php-fpm has ended")
        self.log.unlink(missing_ok=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
