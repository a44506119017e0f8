# SPDX-License-Identifier: Apache-2.0
"""Handlers crash under load: requests on the other worker and new requests still get correct responses. A crash fails
only requests on connections of its own worker."""
import re
import threading

import pytest

import services
from client import Closed
from proc import wait_until

pytestmark = [pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda"),
              pytest.mark.processes("a crash ends the embedding program")]

SOURCE = r"""
#include <duda.h>
#include <stdlib.h>
#include <unistd.h>

static int echo(struct duda_ctx *d)
{
    return duda_printf(d, "%d %s", (int)getpid(), duda_param(d, "n").p);
}

/* Some handlers are waiting when another one crashes. */
static int nap(struct duda_ctx *d)
{
    int e = duda_sleep(d, 1);
    return e ? e : echo(d);
}

static int crash(struct duda_ctx *d)
{
    (void)d;
    abort();
}

DUDA_SERVICE(fragile, DUDA_GET("/echo/:n", echo, ""), DUDA_GET("/nap/:n", nap, ""), DUDA_GET("/crash", crash, ""));
"""
CRASHES = 4
DEATH = r"worker (\d+) was killed by signal"
BROKEN = (Closed, ConnectionError)


class Load(threading.Thread):
    """Sends one request after another and checks each response, until `stops` is set."""

    def __init__(self, server, path):
        super().__init__()
        self.server, self.path = server, path
        self.stops = threading.Event()
        self.n, self.lost = 0, []  # for each lost request: the worker of its connection, or None if it is unknown
        self.wrong = None

    def check(self, client, n):
        client.ask(f"{self.path}/{n}")
        answer = client.read()
        if answer.status != 200 or answer.text.split()[1] != str(n):
            self.wrong = answer.status, answer.text
            self.stops.set()
        self.n += 1
        return int(answer.text.split()[0])

    def run(self):
        while not self.stops.is_set():
            self.send_requests()

    def end(self):
        self.stops.set()
        self.join(60)
        assert not self.is_alive() and not self.wrong, self.wrong


class NewConnectionLoad(Load):
    """Opens a new connection for each request."""

    def send_requests(self):
        try:
            with self.server.connect() as client:
                self.check(client, self.n)
        except BROKEN:
            self.lost.append(None)


class PersistentLoad(Load):
    """Sends many requests on one connection, and reconnects when it breaks."""

    def send_requests(self):
        worker = None
        try:
            with self.server.connect() as client:
                while not self.stops.is_set():
                    worker = self.check(client, self.n)
        except BROKEN:
            self.lost.append(worker)


def crash(server):
    try:
        return server.get("/crash").status
    except BROKEN:
        return None


@pytest.fixture
def loaded(monkey, tmp_path, request):
    server = monkey(plugins=[services.build(tmp_path, "fragile", SOURCE)], workers=2, top=request.param,
                    server="KeepAliveRequests unlimited")
    server.allow("was killed by signal", "exited unexpectedly", "Sanitizer")
    load = [NewConnectionLoad(server, "/echo"), NewConnectionLoad(server, "/echo"), PersistentLoad(server, "/echo"), PersistentLoad(server, "/echo"), PersistentLoad(server, "/nap"),
            PersistentLoad(server, "/nap")]
    for thread in load:
        thread.start()
    yield server, load
    for thread in load:
        thread.stops.set()


def progress(load):
    """Waits until every thread has made progress."""
    before = [thread.n for thread in load]
    wait_until(lambda: all(thread.n > n + 5 or thread.wrong for thread, n in zip(load, before, strict=True)), "all make progress")


@pytest.mark.parametrize("loaded", ["[DUDA]\n    CrashLimit off\n"], indirect=True)
def test_crash_loses_only_connections_of_its_process(loaded):
    server, load = loaded
    for n in range(CRASHES):
        progress(load)
        assert crash(server) is None
        server.err.wait_for(DEATH, count=n + 1)
    progress(load)
    for thread in load:
        thread.end()
    fresh, kept, dead = load[:2], load[2:], set(map(int, re.findall(DEATH, server.err.text)))
    assert len(dead) == CRASHES
    assert [thread.lost for thread in fresh] == [[], []], "no new request is lost"
    for thread in kept:
        assert set(thread.lost) <= dead, "a connection to a worker that has not crashed broke"


@pytest.mark.parametrize("loaded", [""], indirect=True)
def test_route_that_crashes_repeatedly_does_not_affect_others(loaded):
    server, load = loaded
    answers = []
    while 503 not in answers:
        progress(load)
        answers.append(crash(server))
    assert len(answers) <= 3 + 2, "each of the two workers may miss a concurrent crash of the other"
    n = server.err.text.count("terminated its worker")
    for _ in range(10):
        assert crash(server) == 503
    progress(load)
    for thread in load:
        thread.end()
    assert not load[0].lost and not load[1].lost
    assert server.err.text.count("terminated its worker") == n
