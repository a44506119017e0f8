# SPDX-License-Identifier: Apache-2.0
"""Finds free ports on the loopback interface."""
import collections
import random
import socket
from pathlib import Path

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOWEST, USUAL = 10240, 32768
RECENT = 4096  # ports not given out again, because their owners may not have bound them yet

_given = collections.deque(maxlen=RECENT)


def first_of_clients() -> int:
    """Returns the first ephemeral port: the kernel could assign higher ports to clients before the server binds them."""
    try:
        return int(RANGE.read_text().split()[0])
    except OSError:
        return USUAL


def _give(port: int) -> int:
    _given.append(port)
    return port


def is_free(port: int) -> bool:
    with socket.socket() as sock:
        try:
            sock.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


def is_taken(port: int) -> bool:
    """Returns whether a server cannot bind the port. Connections of an earlier server in TIME_WAIT do not matter."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
            return False
        except OSError:
            return True


def free_port() -> int:
    """Returns a free port below the ephemeral ports if possible. Another server may still bind it first; then the start fails."""
    end = first_of_clients()
    for _ in range(200):
        port = random.randrange(LOWEST, end if end > LOWEST + 1000 else 65536)
        if port not in _given and is_free(port):
            return _give(port)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return _give(sock.getsockname()[1])
