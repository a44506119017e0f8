# SPDX-License-Identifier: Apache-2.0
"""Fixtures of all black box tests."""
import http.client  # noqa: F401: the folder of that name must not take its place, whoever is collected first
import http.server  # noqa: F401
import os
import signal
import subprocess

import contest  # noqa: F401: so with the package in tools/contest
import pytest

import protocols
from monkey import ENVIRONMENT, PROGRAM, SECONDS, Encryption, Server, Site, over_tls, write_config
from proc import Process


def pytest_configure(config):
    protocols.register(config)
    # Shells ignore them in what runs in the background, and so would every program that a test interrupts.
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, usual)


def pytest_generate_tests(metafunc):
    protocols.multiply(metafunc)


def pytest_collection_modifyitems(config, items):
    protocols.select(config, items)


@pytest.fixture
def protocol(request):
    """What the clients of the test speak: see protocols.py."""
    return getattr(request, "param", protocols.DEFAULT)


@pytest.fixture(scope="session")
def encryption(tmp_path_factory):
    """The certificate of servers that speak TLS, and whom their clients trust."""
    return Encryption(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def site(tmp_path):
    """The document root of the test: `site.add("a/b.html", "text")`."""
    return Site(tmp_path / "site")


@pytest.fixture
def monkey(tmp_path, site, protocol, request):
    """Starts the program, as often as the test likes; each is stopped and checked at the end. It serves the protocol
    of the test, over TLS if need be, and connect(), get() and the like of the server speak it.

        monkey()                                            serves the folder `site`
        monkey(server="MaxHeadSize 8192", host="SymLink on", sections="[ROUTES]\\n    /x status 403\\n")
        monkey(listen=["127.0.0.1:0", "[::1]:0"], workers=2)
        monkey(config="[SERVER]\\n ...")                     a whole configuration
        monkey(args=["-p", "0", site])                      a command line
        monkey(..., expect_start=False)                     it is not expected to serve: see server.wait()
    """
    assert PROGRAM.exists(), f"{PROGRAM} is not built"
    servers = []
    encrypts = protocol.endswith("-tls")
    encryption = request.getfixturevalue("encryption") if encrypts else None

    def start(args=None, config=None, environment=None, program=None, expect_start=True, wrapper=(), popen=None,
              protocol=protocol, encryption=encryption, **keys):
        path = None
        assert args is None or program is not None or not encrypts, "a command line cannot say what the certificate is"
        if args is None:
            path = tmp_path / f"monkey{len(servers) or ''}.conf"
            if config is None:
                write_config(path, tls=encryption, **keys)
            else:
                path.write_text(over_tls(config, encryption) if encrypts else config)
            args = ["-c", path]
        server = Server(tmp_path, args, path, environment, program, False, wrapper, protocol, encryption, **(popen or {}))
        servers.append(server)
        if expect_start:
            server.wait_until_serving()
        return server

    yield start
    problems = []
    for server in servers:
        try:
            server.stop()
        except AssertionError as error:
            problems.append(str(error))
        finally:
            server.kill()
    assert not problems, "\n".join(problems)


@pytest.fixture
def watch(monkey):
    """`watch(pid)` is a process that is no child of ours, such as a new master; it is ended with the test."""
    processes = []

    def start(pid):
        processes.append(Process(pid))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()


@pytest.fixture
def run(tmp_path):
    """Runs the program to its end: `run("-t", site).code`, `.out`, `.err`."""
    def start(*args, environment=None, folder=None, **popen):
        done = subprocess.run([PROGRAM, *map(str, args)], cwd=folder or tmp_path, stdin=subprocess.DEVNULL,
                              env=os.environ | ENVIRONMENT | (environment or {}), timeout=SECONDS,
                              **{"capture_output": True, **popen})
        return Done(done)

    return start


class Done:
    """How a program ended, and what it said."""

    def __init__(self, done):
        self.code = done.returncode
        self.out = (done.stdout or b"").decode("utf-8", "replace")
        self.err = (done.stderr or b"").decode("utf-8", "replace")
        assert "Sanitizer" not in self.err and "runtime error" not in self.err, self.err

    def __repr__(self):
        return f"<{self.code}: {self.out!r}, {self.err!r}>"
