# SPDX-License-Identifier: Apache-2.0
"""The protocols that each test runs over (tests/protocols.py), and the tests that `make test` selects (tests/quick.py)."""
import re
import subprocess
import sys

import pytest

import protocols
import quick
from monkey import PROTOCOLS, ROOT


class Mark:
    def __init__(self, name, args=(), **kwargs):
        self.name, self.args, self.kwargs = name, args, kwargs


class Spec:
    def __init__(self, params):
        self.params = params


class Item:
    """The attributes of a pytest item that the two modules use."""

    def __init__(self, name, protocol=None, number=None, marks=(), folder="http", module="files"):
        self.originalname, self.nodeid, self.cls, self.own_markers = name, name, None, list(marks)
        self.path = ROOT / "tests" / folder / f"test_{module}.py"
        if protocol:
            self.callspec = Spec({"protocol": protocol} | ({} if number is None else {"number": number}))

    def iter_markers(self, name):
        return (mark for mark in self.own_markers if mark.name == name)

    def get_closest_marker(self, name):
        return next(self.iter_markers(name), None)


class Config:
    def __init__(self, quick_too=False):
        self.hook, self._quick = self, quick_too

    def pytest_deselected(self, items):
        pass

    def getoption(self, _):
        return self._quick


def selected(items, module=protocols, config=None):
    module.select(config or Config(), items)
    return [(item.originalname, protocol, item.callspec.params.get("number")) for item in items
            if (protocol := quick.protocol_of(item))]


def all_of(name, numbers=(None,), **how):
    return [Item(name, protocol, number, **how) for number in numbers for protocol in PROTOCOLS]


@pytest.fixture(autouse=True)
def usual(monkeypatch):
    monkeypatch.setattr(protocols, "EVERY", False)


def test_unparametrized_test_runs_over_all_protocols():
    assert [protocol for _, protocol, _ in selected(all_of("test_a"))] == list(PROTOCOLS)


def test_parameter_sets_alternate_between_protocols():
    found = selected(all_of("test_a", range(4)))
    assert [(protocol, number) for _, protocol, number in found] == [
        ("h1", 0), ("h2-tls", 0), ("h1-tls", 1), ("h2", 1), ("h1", 2), ("h2-tls", 2), ("h1-tls", 3), ("h2", 3)]


def test_parameter_sets_of_pytest_alternate_too():
    """The order of the decorators does not matter: here, the protocol's decorator is the outer one."""
    name = "plugins/test_proxy.py::test_proxy_forwards_bodies_in_both_directions"
    found = subprocess.run([sys.executable, "-m", "pytest", "-c", ROOT / "tests/pytest.ini", "--collect-only", "-q", ROOT / "tests" / name],
                           capture_output=True, text=True).stdout
    sets = {}
    for number, protocol in re.findall(rf"{re.escape(name)}\[(\d+)-(\S+)\]", found):
        sets.setdefault(number, []).append(protocol)
    assert list(sets.values()) == [["h1", "h2-tls"], ["h1-tls", "h2"]] * 2


def test_http1_tests_alternate_between_plain_and_tls():
    found = selected(all_of("test_a", range(2), marks=[Mark("http1")]))
    assert [(protocol, number) for _, protocol, number in found] == [("h1", 0), ("h1-tls", 1)]


def test_test_with_named_protocols_runs_over_all_of_them():
    found = selected(all_of("test_a", range(2), marks=[Mark("over", ("h1", "h2"), why="it is about both")]))
    assert [(protocol, number) for _, protocol, number in found] == [("h1", 0), ("h2", 0), ("h1", 1), ("h2", 1)]


def test_every_combination_runs_on_request(monkeypatch):
    monkeypatch.setattr(protocols, "EVERY", True)
    assert len(selected(all_of("test_a", range(3)))) == 12


def test_quick_selects_one_item_per_test_and_alternates_protocols():
    items = all_of("test_a", range(2)) + all_of("test_b") + all_of("test_c", folder="site")
    assert selected(items, quick, Config(True)) == [("test_a", "h1", 0), ("test_b", "h1-tls", None)]


def test_quick_skips_slow_tests():
    assert selected(all_of("test_a", marks=[Mark("slow")]), quick, Config(True)) == []


def test_quick_names_only_existing_modules():
    for folder, modules in quick.MODULES.items():
        for module in modules:
            assert (ROOT / "tests" / folder / f"test_{module}.py").exists(), f"{folder}/{module}"
