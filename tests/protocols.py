# SPDX-License-Identifier: Apache-2.0
"""Which protocols a test runs over. Those of the core that start a server run over all four,

    h1       HTTP/1.1           h2       HTTP/2, by prior knowledge
    h1-tls   HTTP/1.1 over TLS  h2-tls   HTTP/2 over TLS, by ALPN

unless marks on the test, its parameters or its module say otherwise:

    @pytest.mark.http1                       it sends bytes of HTTP/1, or is about its framing or connections
    @pytest.mark.http2                       the same of HTTP/2
    @pytest.mark.over("h1", "h2-tls", why="one server is as slow to start as another")

The nearest `over` counts, and of its protocols those that `http1` or `http2` leave.

A test with parameters takes turns: each set of parameters runs over half of the protocols, the next set over the other half
(see TURNS), so that the test as a whole runs over all of them, and each set over HTTP/1 and HTTP/2. MONKEY_EVERY=1 runs each
set over all.

tests/house/check_protocols.py looks at these marks. Tests elsewhere, such as those of plugins, run over HTTP/1.1, or
over what MONKEY_PROTOCOL says.
"""
import os

from monkey import PROTOCOLS

# Tests of processes start many servers each: they run over all protocols that they are made for only with MONKEY_EVERY=1,
# and over HTTP/1.1 otherwise, but for tests that name others themselves.
EVERY = os.environ.get("MONKEY_EVERY") == "1"

FOLDERS = ("http", "process", "server", "site")
DEFAULT = os.environ.get("MONKEY_PROTOCOL", "h1")
# Over what the sets of parameters of one test run: the first set over the first pair, the second set over the second pair,
# the third over the first again.
TURNS = (("h1", "h2-tls"), ("h2", "h1-tls"))
MARKS = {"http1": ("h1", "h1-tls"), "http2": ("h2", "h2-tls")}


def register(config):
    for line in ("http1: for tests about HTTP/1 itself", "http2: for tests about HTTP/2 itself",
                 "over(*protocols, why): for tests that need not run over all protocols"):
        config.addinivalue_line("markers", line)


def is_of_core(path):
    return path.parent.name in FOLDERS and path.parent.parent.name == "tests"


def multiply(metafunc):
    """Every test of the core that uses the program, four times; select() takes away what is too much."""
    if "protocol" in metafunc.fixturenames and is_of_core(metafunc.definition.path):
        metafunc.parametrize("protocol", PROTOCOLS, indirect=True)


def wanted(item):
    is_of_processes = item.path.parent.name == "process" and not EVERY
    if is_of_processes and not any(mark.name == "over" for mark in item.own_markers):
        return ("h1",)
    return marked(item)


def marked(item):
    over = next((mark for mark in item.iter_markers("over")), None)  # the nearest
    found = set(over.args if over else PROTOCOLS)
    assert found and found <= set(PROTOCOLS), f"{item.nodeid}: unknown protocols in {over}"
    assert not over or over.kwargs.get("why"), f"{item.nodeid}: does not say why it runs over {over.args} only"
    for name, protocols in MARKS.items():
        if item.get_closest_marker(name):
            found &= set(protocols)
    assert found, f"{item.nodeid}: runs over nothing"
    return found


class Turns:
    """Counts the sets of parameters of each test."""

    def __init__(self):
        self._sets = {}

    def of(self, item):
        """The protocols whose turn it is. A test that names its protocols runs over all of them, and so does a test that has
        no parameters but the protocol."""
        # The same objects over each protocol. (pytest's indices count on with the protocol.)
        parameters = tuple(sorted((name, id(value)) for name, value in item.callspec.params.items() if name != "protocol"))
        if EVERY or not parameters or item.get_closest_marker("over"):
            return PROTOCOLS
        known = self._sets.setdefault((item.path, item.originalname), {})
        return TURNS[known.setdefault(parameters, len(known)) % len(TURNS)]


def select(config, items):
    turns = Turns()

    def runs(item):
        params = getattr(item, "callspec", None)
        if params is None or "protocol" not in params.params:
            return True
        protocol, found = params.params["protocol"], wanted(item)
        return protocol in found and (len(found) == 1 or protocol in turns.of(item))

    kept = [item for item in items if runs(item)]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if not runs(item)])
        items[:] = kept
