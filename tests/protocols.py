# SPDX-License-Identifier: Apache-2.0
"""Selects the protocols that a test runs over. Core tests that start a server run over all four protocols,

    h1       HTTP/1.1           h2       HTTP/2, by prior knowledge
    h1-tls   HTTP/1.1 over TLS  h2-tls   HTTP/2 over TLS, by ALPN

unless marks on the test, its parameters or its module say otherwise:

    @pytest.mark.http1                       the test sends raw HTTP/1, or tests its framing or its connections
    @pytest.mark.http2                       the same for HTTP/2
    @pytest.mark.over("h1", "h2-tls", why="one server is as slow to start as another")

The nearest `over` applies; `http1` and `http2` restrict its protocols further.

A parametrized test alternates: each parameter set runs over half of the protocols and the next set over the other half (see
PROTOCOL_PAIRS), so that the whole test covers all protocols, and each set covers HTTP/1 and HTTP/2. With MONKEY_EVERY=1, each
set runs over all protocols.

tests/house/check_protocols.py checks these marks. Other tests, such as those of plugins, run over HTTP/1.1, or over the
protocol in MONKEY_PROTOCOL.
"""
import os

from monkey import PROTOCOLS

# The tests in tests/process start many servers each: unless MONKEY_EVERY=1, they run over HTTP/1.1 only, except for tests that
# name other protocols themselves.
EVERY = os.environ.get("MONKEY_EVERY") == "1"

FOLDERS = ("http", "process", "server", "site")
DEFAULT = os.environ.get("MONKEY_PROTOCOL", "h1")
# The protocols of the parameter sets of one test: the first set runs over the first pair, the second set over the second pair,
# the third over the first again.
PROTOCOL_PAIRS = (("h1", "h2-tls"), ("h2", "h1-tls"))
MARKS = {"http1": ("h1", "h1-tls"), "http2": ("h2", "h2-tls")}


def register(config):
    for line in ("http1: for tests about HTTP/1 itself", "http2: for tests about HTTP/2 itself",
                 "over(*protocols, why): for tests that need not run over all protocols"):
        config.addinivalue_line("markers", line)


def is_of_core(path):
    return path.parent.name in FOLDERS and path.parent.parent.name == "tests"


def multiply(metafunc):
    """Runs every core test that starts the program over all four protocols; select() removes the surplus."""
    if "protocol" in metafunc.fixturenames and is_of_core(metafunc.definition.path):
        metafunc.parametrize("protocol", PROTOCOLS, indirect=True)


def wanted(item):
    is_of_processes = item.path.parent.name == "process" and not EVERY
    if is_of_processes and not any(mark.name == "over" for mark in item.own_markers):
        return ("h1",)
    return marked(item)


def marked(item):
    over = next((mark for mark in item.iter_markers("over")), None)  # the nearest mark applies
    found = set(over.args if over else PROTOCOLS)
    assert found and found <= set(PROTOCOLS), f"{item.nodeid}: unknown protocols in {over}"
    assert not over or over.kwargs.get("why"), f"{item.nodeid}: gives no reason for running over {over.args} only"
    for name, protocols in MARKS.items():
        if item.get_closest_marker(name):
            found &= set(protocols)
    assert found, f"{item.nodeid}: runs over no protocol"
    return found


class ParameterSets:
    """Numbers the parameter sets of each test, and assigns a pair of protocols to each set."""

    def __init__(self):
        self._sets = {}

    def of(self, item):
        """Returns the protocols for this parameter set. A test that names its protocols or has no other parameters runs over all
        of them."""
        # The identities of the values are the same for each protocol; pytest's index of a set is not.
        parameters = tuple(sorted((name, id(value)) for name, value in item.callspec.params.items() if name != "protocol"))
        if EVERY or not parameters or item.get_closest_marker("over"):
            return PROTOCOLS
        known = self._sets.setdefault((item.path, item.originalname), {})
        return PROTOCOL_PAIRS[known.setdefault(parameters, len(known)) % len(PROTOCOL_PAIRS)]


def select(config, items):
    turns = ParameterSets()

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
