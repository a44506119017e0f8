# SPDX-License-Identifier: Apache-2.0
"""REQUEST_URI through every gateway: path and query, even for an absolute target (RFC 9112, section 3.2.2)."""
import contextlib
import json

import pytest

import php_fpm
from cgi_scripts import ENV, environment
from scgi_server import Program

# The client's target, and the program's REQUEST_URI, which routers of frameworks parse as a path.
ABSOLUTE = [("http://h.example/app?x=1", "/app?x=1"), ("http://h.example:81/app/a%20b/%2e?x=%20&y", "/app/a%20b/?x=%20&y"),
            ("HTTP://H.EXAMPLE/app/http://other.example/?/x", "/app/http://other.example/?/x"), ("http://h.example/app?", "/app?"),
            ("http://h.example/app", "/app"), ("http://h.example//app", "/app"), ("https://h.example/app?x", "/app?x")]
BARE = [("http://h.example", "/"), ("http://h.example?x=1", "/?x=1"), ("http://h.example:81", "/")]


def read_uwsgi(stream):
    """Parses the variables (uwsgi-docs.readthedocs.io/en/latest/Protocol.html)."""
    block = stream.read(int.from_bytes(stream.read(4)[1:3], "little"))
    texts = []
    while block:
        end = 2 + int.from_bytes(block[:2], "little")
        texts.append(block[2:end].decode("latin-1"))
        block = block[end:]
    variables = dict(zip(texts[::2], texts[1::2]))
    return variables, stream.read(int(variables.get("CONTENT_LENGTH") or 0))


class Uwsgi(Program):
    read = staticmethod(read_uwsgi)


def through_cgi(monkey, site, stack):
    site.add("app", ENV, mode=0o755)
    server = monkey(plugins=["cgi"], sections="[ROUTES]\n    /* cgi\n")
    return server, lambda reply: environment(reply)["REQUEST_URI"]


def through_fastcgi(monkey, site, stack):
    if not php_fpm.PROGRAM:
        pytest.skip("there is no php-fpm")
    site.add("index.php", "<?php echo $_SERVER['REQUEST_URI'];")
    fpm = stack.enter_context(php_fpm.Fpm(site.path.parent))
    server = monkey(plugins=["fastcgi"], host="Index index.php\nFallback index.php",
                    sections=f"[ROUTES]\n    *.php fastcgi {fpm.address}\n    /* static\n")
    return server, lambda reply: reply.text


def through(kind, program):
    def start(monkey, site, stack):
        backend = stack.enter_context(program())
        server = monkey(plugins=[kind], sections=f"[ROUTES]\n    /* {kind} {backend.address}\n")
        return server, lambda reply: json.loads(reply.text)["variables"]["REQUEST_URI"]

    return start


GATEWAYS = {"cgi": through_cgi, "fastcgi": through_fastcgi, "scgi": through("scgi", Program), "uwsgi": through("uwsgi", Uwsgi)}


@pytest.mark.parametrize("kind", GATEWAYS)
def test_request_uri_of_absolute_target_is_path_and_query(monkey, site, kind):
    with contextlib.ExitStack() as stack:
        server, uri_of = GATEWAYS[kind](monkey, site, stack)
        for sent, seen in ABSOLUTE + BARE * (kind != "cgi"):
            for target in {sent, seen}:
                assert uri_of(server.get(target)) == seen, target
