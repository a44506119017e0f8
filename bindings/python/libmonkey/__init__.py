# SPDX-License-Identifier: Apache-2.0
"""Embeds the Monkey HTTP server in a Python program.

    import libmonkey

    server = libmonkey.Server()

    @server.route("GET /hello")
    def hello(request, response):
        return "hello\\n"

    print(server.listen("127.0.0.1:0"))
    server.run()
"""
from .api import lib
from .events import Event
from .request import Deferred, Ended, Request, Response
from .server import Error, Server
from .websocket import WebSocket

__all__ = ["Deferred", "Ended", "Error", "Event", "Request", "Response", "Server", "WebSocket", "version"]


def version() -> str:
    """Returns the version of the library."""
    text: str = lib.mk_version().decode()
    return text
