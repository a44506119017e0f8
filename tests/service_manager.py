# SPDX-License-Identifier: Apache-2.0
"""A service manager that a server notifies."""
import socket

from monkey import SECONDS


class Manager:
    """The socket that NOTIFY_SOCKET names."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + address[1:] if address[0] == "@" else address)
        self.socket.settimeout(SECONDS)
        self.environment = {"NOTIFY_SOCKET": address}

    def read(self):
        """Returns the next message as a dict."""
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())

    def wait_for(self, key):
        """Returns the next message with this key."""
        while key not in (message := self.read()):
            pass
        return message

    def skip(self):
        """Drops the messages that have arrived."""
        while not self.is_silent():
            pass

    def is_silent(self):
        self.socket.setblocking(False)
        try:
            return not self.socket.recv(4096)
        except BlockingIOError:
            return True
        finally:
            self.socket.settimeout(SECONDS)
