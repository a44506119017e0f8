# SPDX-License-Identifier: Apache-2.0
"""One address in front of changing servers, like a load balancer: a connection stays on its server."""
import contextlib
import socket
import threading


class Relay:
    """New connections go to `target`, a (host, port) or the path of a unix socket; `greet(server)`, if given, sends data to the
    server first."""

    def __init__(self, target, greet=None):
        self.target, self.greet, self.connections = target, greet, 0
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.open = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.drop()

    def drop(self):
        """Closes all connections."""
        for each in self.open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _reach(self):
        server = socket.socket(socket.AF_UNIX if isinstance(self.target, str) else socket.AF_INET)
        server.connect(self.target)
        if self.greet:
            self.greet(server)
        return server

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listening.accept()
                self.connections += 1
                try:
                    server = self._reach()
                except OSError:
                    client.close()
                    continue
                self.open += [client, server]
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=pair, daemon=True).start()

    @staticmethod
    def _pump(source, sink):
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                sink.sendall(piece)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
