# SPDX-License-Identifier: Apache-2.0
"""Helpers for the tests of the security plugin."""
import ssl
import textwrap


def indented(text):
    return textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")


def guard(monkey, rules="", below="", other="", plugins=("security",), **keys):
    """Starts a server with `rules` above its host, and with the rules `below` after it."""
    top = (f"[SECURITY]\n{indented(rules)}\n" if rules.strip() else "") + other
    keys["sections"] = (f"[SECURITY]\n{indented(below)}\n" if below.strip() else "") + keys.get("sections", "")
    return monkey(plugins=list(plugins), top=top, **keys)


def status(server, target="/", source=None, **how):
    with server.connect(source=source) as c:
        return c.get(target, **how).status


def is_refused(server, source):
    """Does the server close the connection without sending a byte, even of a handshake?"""
    try:
        with server.connect(source=source) as c:
            c.ask("/")
            return not c.fill() and not c.got
    except (ConnectionError, ssl.SSLError):
        return True
