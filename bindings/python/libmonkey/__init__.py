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
from .request import Ended, Request, Response
from .server import Error, Server

__all__ = ["Ended", "Error", "Request", "Response", "Server"]
