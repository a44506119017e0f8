# SPDX-License-Identifier: Apache-2.0
"""Fixtures of all black-box tests."""
import gc
import http.client  # noqa: F401: imported first, so that the folder tests/http never shadows it
import http.server  # noqa: F401
import os
import signal
import subprocess
from pathlib import Path

import pytest

import protocols
import quick
from monkey import ENVIRONMENT, PROGRAM, SECONDS, Encryption, Site, needs_processes
from proc import Process
from starter import Starter, check_lasting

BENCHMARK = Path(__file__).resolve().with_name("benchmark")


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="a representative part of the tests, see quick.py")


def pytest_configure(config):
    protocols.register(config)
    quick.register(config)
    config.addinivalue_line("markers", "processes(why): for tests that a server inside a program (MONKEY_EMBEDDED=1) cannot pass")
    # Shells start background jobs with SIGINT and SIGQUIT ignored, nohup programs with SIGHUP. Programs that a test interrupts would inherit this.
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, usual)


def pytest_ignore_collect(collection_path, config):
    """The tests of the benchmark tools have their own requirements, so they run only if named on the command line."""
    if collection_path == BENCHMARK and not any(BENCHMARK in (path, *path.parents) for path in named_by(config)):
        return True
    return quick.ignores(collection_path, config)


def named_by(config):
    return [(config.invocation_params.dir / argument.split("::")[0]).resolve() for argument in config.args]


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collected tests live until the end of the run: freezing them spares the garbage collector from scanning them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_generate_tests(metafunc):
    protocols.multiply(metafunc)


def pytest_collection_modifyitems(config, items):
    protocols.select(config, items)
    quick.select(config, items)


def pytest_runtest_setup(item):
    if mark := item.get_closest_marker("processes"):
        needs_processes(*mark.args)


@pytest.fixture
def protocol(request):
    """The protocol of the test's clients: see protocols.py."""
    return getattr(request, "param", protocols.DEFAULT)


@pytest.fixture(scope="session")
def encryption(tmp_path_factory):
    """The certificate of the TLS servers, and the authority that their clients trust."""
    return Encryption(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def site(tmp_path):
    """The document root of the test: `site.add("a/b.html", "text")` adds a file."""
    return Site(tmp_path / "site")


def encryption_of(protocol, request):
    return request.getfixturevalue("encryption") if protocol.endswith("-tls") else None


@pytest.fixture
def monkey(tmp_path, site, protocol, request):
    """Starts the program any number of times; stops and checks each server at the end. A server and its connect(), get() and
    similar methods use the protocol of the test, and TLS if that protocol requires it.

        monkey()                                            serves the folder `site`
        monkey(server="MaxHeaderSize 8192", host="FollowSymlinks on", sections="[ROUTES]\\n    /x status 403\\n")
        monkey(listen=["127.0.0.1:0", "[::1]:0"], workers=2)
        monkey(config="[SERVER]\\n ...")                     a whole configuration
        monkey(args=["-p", "0", site])                      a command line
        monkey(..., expect_start=False)                     the start may fail: see server.wait()
    """
    starter = Starter(tmp_path, protocol, encryption_of(protocol, request))
    yield starter.start
    starter.stop()


@pytest.fixture(scope="module")
def lasting_starters():
    kept = {}
    yield kept
    for starter in kept.values():
        starter.stop()


@pytest.fixture
def lasting(lasting_starters, tmp_path_factory, protocol, request):
    """`lasting(prepare)` returns a server that all tests of the module share: they only send requests, and change neither the
    server nor its files. `prepare(monkey, site)` starts it, once for each protocol. The server is checked after each test and at
    the end."""
    used = set()

    def get(prepare):
        key = prepare, protocol
        used.add(key)
        if key not in lasting_starters:
            folder = tmp_path_factory.mktemp("lasting")
            starter = lasting_starters[key] = Starter(folder, protocol, encryption_of(protocol, request))
            prepare(starter.start, Site(folder / "site"))
        return lasting_starters[key].servers[0]

    yield get
    for key in used:
        check_lasting(lasting_starters, key)


@pytest.fixture(scope="module")
def prepared():
    """Stores the functions that fixtures pass to `lasting`, which identifies a server by its function. Functions and servers live
    as long as the module's fixtures: if the tests of a module are not consecutive, the servers start again."""
    return {}


@pytest.fixture
def watch(monkey):
    """`watch(pid)` observes a process that is not our child, such as a new master, and ends it after the test."""
    processes = []

    def start(pid):
        processes.append(Process(pid))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()


@pytest.fixture
def run(tmp_path):
    """Runs the program until it exits; the result of `run("-t", site)` has the attributes code, out and err."""
    def start(*args, environment=None, folder=None, wrapper=(), **popen):
        done = subprocess.run([*wrapper, PROGRAM, *map(str, args)], cwd=folder or tmp_path, stdin=subprocess.DEVNULL,
                              env=os.environ | ENVIRONMENT | (environment or {}), timeout=SECONDS,
                              **{"capture_output": True, **popen})
        return Done(done)

    return start


class Done:
    """The exit code and output of a program."""

    def __init__(self, done):
        self.code = done.returncode
        self.out = (done.stdout or b"").decode("utf-8", "replace")
        self.err = (done.stderr or b"").decode("utf-8", "replace")
        assert "Sanitizer" not in self.err and "runtime error" not in self.err, self.err

    def __repr__(self):
        return f"<{self.code}: {self.out!r}, {self.err!r}>"
