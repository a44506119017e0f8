# SPDX-License-Identifier: Apache-2.0
"""A mail server for tests, which stores the received mail; based on aiosmtpd."""
import asyncio
import contextlib
import threading

from aiosmtpd.smtp import SMTP


class MailServer:
    """Accepts mail for example.org; the recipient `later` gets a temporary failure."""

    def __init__(self):
        self.got, self.options = [], []

    async def handle_MAIL(self, _server, _session, envelope, address, options):
        self.options.append(options)
        envelope.mail_from = address
        return "250 ok"

    async def handle_RCPT(self, _server, _session, envelope, address, _options):
        if address.startswith("later@"):
            return "450 4.2.1 later"
        if not address.endswith("@example.org"):
            return "550 5.1.1 not here"
        envelope.rcpt_tos.append(address)
        return "250 ok"

    async def handle_DATA(self, _server, _session, envelope):
        self.got.append((envelope.mail_from, envelope.rcpt_tos, envelope.content))
        return "250 2.0.0 kept as 17"


@contextlib.contextmanager
def boxes():
    """`with boxes() as box`: box(...) starts a mail server with options of aiosmtpd; .got holds the mail, .where the address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def serve(server, tls, how):
        return await loop.create_server(lambda: SMTP(server, loop=loop, hostname="mail", **how), "127.0.0.1", 0, ssl=tls)

    def run(tls=None, **how):
        server = MailServer()
        listening = asyncio.run_coroutine_threadsafe(serve(server, tls, how), loop).result(20)
        server.address = "127.0.0.1:%d" % listening.sockets[0].getsockname()[1]
        return server

    try:
        yield run
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
