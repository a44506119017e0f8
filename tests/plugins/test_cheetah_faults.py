# SPDX-License-Identifier: Apache-2.0
"""The shell under failing allocations, and with a socket that transfers few bytes at a time, in the release program."""
import socket

import pytest

from fault_injection import Fault, failing_allocations
from proc import RELEASE, descriptors, wait_until
from shell_server import RawClient, ShellServer, socket_folder

COMMANDS = ["version", "status", "json status", "workers", "json connections", "hosts", "configuration", "plugins", "cache",
            "json cache", "cache clear", "loglevel", "loglevel info", "bogus", "help", "uptime"]


@pytest.fixture
def begin(monkey, site, socket_folder, tmp_path):
    def with_fault(name):
        if not (RELEASE.parent / "plugins/monkey-cheetah.so").exists():
            pytest.skip("needs build/release and its plugins")
        site.add("index.html", "hello")
        fault = Fault(name, tmp_path)
        server = monkey(plugins=["cheetah"], top=f"[CHEETAH]\n    Socket {socket_folder}/sock\n", workers=1, **fault.how)
        return ShellServer(server, socket_folder / "sock"), fault
    return with_fault


def play(it):
    """Returns the number of failed commands: for each, the server reports the error or closes the session."""
    lost = 0
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(20)
        s.connect(str(it.path))
        file = s.makefile("rb")
        for command in ("hello", *COMMANDS):
            try:
                s.sendall(command.encode() + b"\n")
                while (line := file.readline())[:1] in (b" ", b"#"):
                    pass
            except (BrokenPipeError, ConnectionResetError):
                line = b""
            if not line or line.startswith(b"HTTP/1.1 503 "):  # refused before the server knows the protocol
                return lost + 1
            assert line[:1] in b"+-?!", line
            lost += line[:1] != (b"?" if command == "bogus" else b"+")
    return lost


@pytest.mark.timeout(300)
def test_shell_survives_failure_of_any_allocation(begin):
    it, fault = begin("failmalloc")
    (worker,) = it.server.workers
    before, lost = len(descriptors(worker)), 0
    assert play(it) == 0
    for n in failing_allocations(fault, it.server):
        lost += play(it)
    assert n > 30 and lost > 10
    assert play(it) == 0
    wait_until(lambda: len(descriptors(worker)) <= before, "all sessions to be closed")
    assert it.json("status")["sessions"] == 1


@pytest.mark.parametrize("most", [1, 100])
def test_shell_works_with_short_reads_and_writes(begin, most):
    it, fault = begin("shortio")
    fault.most, fault.chance = most, 500
    for _ in range(3):
        assert play(it) == 0, it.server.log
    with RawClient(it.path) as raw:
        for _ in range(20):
            assert raw.ask("version") == (["Monkey 2.0.0"], "+")
    fault.chance = 0
    assert fault.short + fault.again + fault.interrupted > 0
