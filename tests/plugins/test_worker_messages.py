# SPDX-License-Identifier: Apache-2.0
"""Messages between workers under load, while workers start and exit: no message is truncated, mixed up, duplicated, or
delivered to the wrong worker. The plugin tests/plugins/api/message_load.c sends continuously, and checks what it receives.
"""
import os
import signal

import pytest

from monkey import PROGRAM
from proc import children, descriptors, name, wait_until

PLUGIN = PROGRAM.parent / "tests" / "plugins" / "monkey-message_load.so"


class Talk:
    def __init__(self, server):
        self.server = server

    def counts(self, pace=None):
        query = "" if pace is None else f"?{pace}"
        said, refused, heard, wrong = map(int, self.server.get(f"/messages{query}").text.split())
        assert wrong == 0
        return said, refused, heard

    def goes_on(self, count=500):
        """Waits until the workers have received this many more messages."""
        before = self.counts()[2]
        wait_until(lambda: self.counts()[2] > before + count, "messages")


@pytest.fixture
def talk(monkey):
    def start(keys="", pace=20, **how):
        section = "[MESSAGE_LOAD]\n" + "".join(f"    {line}\n" for line in keys.splitlines())
        it = Talk(monkey(plugins=[PLUGIN], top=section, sections="[ROUTES]\n    /messages message-load\n    /* static\n", **how))
        it.counts(pace)
        it.goes_on()
        return it

    return start


def test_messages_between_live_workers_are_never_lost(talk):
    it = talk("All off", workers=3)
    it.goes_on(5000)
    it.counts(pace=0)

    def have_arrived():
        said, _, heard = it.counts()
        return said == heard

    wait_until(have_arrived, "the last messages")


def test_messages_survive_reloads(talk):
    it = talk(workers=2)
    for i in range(1, 6):
        it.server.tell(signal.SIGHUP)
        it.server.err.wait_for("the new configuration serves", count=i)
        it.goes_on()


def test_messages_survive_killed_workers(talk):
    it = talk(workers=3)
    it.server.allow("was killed by signal")
    for i in range(10):
        victim = it.server.workers[i % 3]
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: victim not in it.server.workers and len(it.server.workers) == 3, "a successor")
        it.goes_on()


def test_messages_survive_draining_workers(talk):
    it = talk(workers=2)
    for _ in range(3):
        before = it.server.workers
        with it.server.connect() as client:
            client.get("/messages")  # keeps the worker of this connection alive
            for pid in before:
                os.kill(pid, signal.SIGQUIT)
            wait_until(lambda: len(set(it.server.workers) - set(before)) == 2, "successors")
            it.goes_on()
            client.get("/messages")
        wait_until(lambda: not set(it.server.workers) & set(before), "the old ones to end")
        it.goes_on()


def test_messages_to_stopped_worker_are_dropped(talk):
    it = talk(workers=2)
    first, second = it.server.workers
    for pid in (first, second):
        os.kill(pid, signal.SIGSTOP)
        try:
            wait_until(lambda: it.server.err.text.count("are lost: its queue is full"), "dropped messages of the other one")
        finally:
            os.kill(pid, signal.SIGCONT)
        it.goes_on()


def test_messages_survive_upgrade(talk, watch):
    it = talk(workers=2)
    it.server.tell(signal.SIGUSR2)
    new = watch(int(it.server.err.wait_for(r"the new program is process (\d+)")[1]))
    it.server.err.wait_for(rf"{new.pid}: monkey \S+ serves with")
    assert it.server.process.wait(30) == 0
    it.counts(pace=20)  # the counts of the new server
    it.goes_on()
    new.tell(signal.SIGTERM)
    new.wait()


@pytest.mark.processes("it reports no end")
def test_messages_continue_while_all_workers_drain(talk):
    """Workers send until their last connection closes."""
    it = talk(workers=2)
    with it.server.connect() as client:
        client.get("/messages")
        it.server.tell(signal.SIGQUIT)
        it.server.err.wait_for("shutting down when all open requests are finished")
        said, _, heard, wrong = map(int, client.get("/messages").text.split())
        assert heard and not wrong
    it.server.wait()


@pytest.mark.parametrize("workers", [1, 4])
def test_message_channels_use_expected_descriptors(monkey, site, workers):
    """Each worker holds the sending ends of all channels and its own receiving end. Without a plugin that receives, there are no
    channels."""
    def sockets(**how):
        server = monkey(workers=workers, **how)
        found = [sum(target.startswith("socket:") for target in descriptors(pid).values())
                 for pid in server.workers]
        assert len(set(found)) == 1
        return found[0]

    with_plugin = sockets(plugins=[PLUGIN])
    assert with_plugin == sockets() + workers + 1
