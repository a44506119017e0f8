# SPDX-License-Identifier: Apache-2.0
"""The cgi plugin together with core features: the `static` handler, and the host of an absolute target."""
import threading
from functools import partial

import pytest

from cgi_scripts import ENV, PLAIN, environment, serve_scripts


@pytest.fixture
def serve(monkey, site):
    return partial(serve_scripts, monkey, site)


@pytest.mark.parametrize("target", ["/cgi-bin/s.sh", "/page.php"])
def test_cgi_script_source_is_never_sent_during_replacement(serve, site, target):
    server = serve({})
    script = site.add(target[1:], PLAIN + "echo output\n", mode=0o755)
    away = script.with_name("away")
    over = threading.Event()

    def replace():
        while not over.is_set():
            script.rename(away)
            away.rename(script)

    thread = threading.Thread(target=replace)
    thread.start()
    seen = set()
    try:
        with server.connect() as c:
            for _ in range(400):
                reply = c.get(target)
                seen.add(reply.status)
                assert reply.status in (200, 403, 404, 502, 503), reply.head
                assert "#!" not in reply.text and "echo" not in reply.text
    finally:
        over.set()
        thread.join()
    assert server.get(target).text == "output\n" and 404 in seen


@pytest.mark.parametrize("head", ["HTTP/1.1\r\nHost: other.example:81\r\n", "HTTP/1.0\r\n", "HTTP/1.0\r\nHost: other.example\r\n"])
def test_cgi_host_variables_come_from_absolute_target(serve, head):
    """The target overrides a different Host header (RFC 9112, section 3.2.2)."""
    server = serve({"env.sh": ENV})
    got = environment(server.send(f"GET http://Chosen.example:99/cgi-bin/env.sh {head}Connection: close\r\n\r\n".encode()))
    assert (got["HTTP_HOST"], got["SERVER_NAME"]) == ("Chosen.example:99", "Chosen.example")
