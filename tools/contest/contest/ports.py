# SPDX-License-Identifier: Apache-2.0
"""Ports of the loopback that nobody has."""
import socket


def free_port() -> int:
    """Another process may take it before the server does; who starts servers tries again then."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]
