# SPDX-License-Identifier: Apache-2.0
"""Selects the tests of `make test` (--quick): a subset that covers every area of the server in a minute or two.

The subset contains one parameter set and one protocol of each test in the modules below, and omits tests marked `slow`. The
protocol alternates from test to test. Modules that need browsers, certificate authorities, other servers or long waits run
only with `make check`.
"""
from monkey import PROTOCOLS

MODULES = {
    "http": ("codings", "conditions", "connections", "errors", "files", "h2_streams", "heads", "hosts", "methods",
             "paths", "ranges", "routes", "wire"),
    "process": ("command_line", "configuration", "explain", "limits", "logs", "reload", "settings", "signals", "workers"),
    "plugins": ("api", "auth", "cgi", "compress", "dirlisting", "headers", "limits", "logger", "rewrite",
                "security", "static", "trailers"),
    "server": ("streaming",),
    "tls": ("certificates", "hosts"),
    "docs": ("docs",),
    "duda": ("hello",),
    "dev": ("need", "packaging", "protocols"),
}


def register(config):
    config.addinivalue_line("markers", "slow: takes seconds, so `make test` leaves it out")


def is_of_module(path):
    return path.stem.removeprefix("test_") in MODULES.get(path.parent.name, ())


def ignores(path, config):
    """Can pytest skip the file without reading it?"""
    return True if config.getoption("--quick") and path.name.startswith("test_") and not is_of_module(path) else None


class QuickSelection:
    """Selects one parameter set and one protocol of each test."""

    def __init__(self):
        self._candidates = {}

    def add(self, item):
        if is_of_module(item.path) and not item.get_closest_marker("slow"):
            self._candidates.setdefault((item.path, item.cls, item.originalname), []).append(item)

    def items(self):
        chosen = []
        for index, candidates in enumerate(self._candidates.values()):
            wish = PROTOCOLS[index % len(PROTOCOLS)]
            chosen.append(next((item for item in candidates if protocol_of(item) == wish), candidates[0]))
        return chosen


def protocol_of(item):
    return item.callspec.params.get("protocol") if hasattr(item, "callspec") else None


def select(config, items):
    if not config.getoption("--quick"):
        return
    choice = QuickSelection()
    for item in items:
        choice.add(item)
    kept = set(choice.items())
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
