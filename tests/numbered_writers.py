# SPDX-License-Identifier: Apache-2.0
"""Clients that write and read numbered values through a service while its backend is killed, frozen, restarted or full.

    with Writers(server.connect, "/v") as writers:
        writers.more(10)
        redis.kill()
        writers.refused(2)
        redis.start()
        writers.more(10)
        writers.check(503, 504)

The service implements PUT and GET of PATH/NUMBER: a 204 acknowledges a PUT. Each number is written once and has a unique value,
so that the clients detect a response that belongs to another number.
"""
import collections
import itertools
import random
import threading
import time

import numbered_backend
from client import Closed
from monkey import SECONDS
from proc import wait_until

STRIDE, NEVER = 1_000_000, 500_000  # each client owns STRIDE numbers, and writes only the first NEVER of them


class StoreClient:
    """A client that repeatedly writes a number, then reads one."""

    def __init__(self, all_of_them, i):
        self.all, self.i, self.random = all_of_them, i, random.Random(i)
        self.client = None
        self.acknowledged, self.unsure = [], []  # numbers whose write was acknowledged; numbers whose outcome is unknown
        self.n_refused = 0
        self.thread = threading.Thread(target=self.run, daemon=True)

    def close(self):
        if self.client:
            self.client.close()
        self.client = None

    def ask(self, method, number, body=b""):
        """Returns the response, or None if the connection broke."""
        try:
            self.client = self.client or self.all.connect()
            reply = self.client.get(f"{self.all.path}/{number}", method, body=body)
        except TimeoutError:
            self.close()
            self.all.wrong.append(f"{method} {number} hangs")
            return None
        except (Closed, OSError):
            self.close()
            self.refuse("broken")
            return None
        if reply.closes:
            self.close()
        return reply

    def refuse(self, how):
        self.all.refusals[how] += 1
        self.n_refused += 1
        self.all.over.wait(0.005)

    def write(self, number):
        reply = self.ask("PUT", number, numbered_backend.content(number, self.all.size))
        if reply and reply.status == 204:
            self.acknowledged.append(number)
            self.all.times.append(time.monotonic())
            return
        self.unsure.append(number)
        if reply:
            self.refuse(reply.status)

    def read(self, number, is_acknowledged):
        reply = self.ask("GET", number)
        if reply is None:
            return
        if reply.status == 200 and number % STRIDE < NEVER and reply.body == numbered_backend.content(number, self.all.size):
            return
        if reply.status == 404 and not (is_acknowledged and self.all.lasts):
            return
        if reply.status in (200, 404):
            self.all.wrong.append(f"{reply.status} {reply.body[:30]!r} for {number}")
        else:
            self.refuse(reply.status)

    def read_any(self, number):
        choice = self.random.randrange(4)
        other = self.random.choice(self.all.clients)
        if choice == 0:
            self.read(number + NEVER, False)
        elif choice == 1 and other.unsure:
            self.read(self.random.choice(other.unsure), False)
        elif other.acknowledged:
            self.read(self.random.choice(other.acknowledged), True)

    def run(self):
        for number in itertools.count(self.i * STRIDE):
            if self.all.over.wait(self.all.pause):
                break
            self.write(number)
            self.read_any(number)
        self.close()


class StoreClients:
    """`lasts`: acknowledged writes must persist; otherwise they may be lost. `pause`: seconds between two rounds of a client."""

    def __init__(self, connect, path, clients=4, size=300, lasts=True, pause=0):
        self.connect, self.path, self.size, self.lasts, self.pause = connect, path, size, lasts, pause
        self.over, self.refusals, self.wrong, self.times = threading.Event(), collections.Counter(), [], []
        self.clients = [StoreClient(self, i) for i in range(clients)]

    def __enter__(self):
        for client in self.clients:
            client.thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.over.set()
        for client in self.clients:
            client.thread.join(SECONDS)
            assert not client.thread.is_alive(), "a client hangs"

    def _each_gets(self, n, result, count):
        goals = [count(client) + n for client in self.clients]
        wait_until(lambda: self.wrong or all(count(c) >= goal for c, goal in zip(self.clients, goals)), f"{n} more {result}")
        assert not self.wrong, self.wrong[:5]

    def more(self, n):
        """Waits until `n` more writes of each client are acknowledged."""
        self._each_gets(n, "acknowledged writes", lambda client: len(client.acknowledged))

    def refused(self, n):
        """Waits until `n` more requests of each client are refused."""
        self._each_gets(n, "refusals", lambda client: client.n_refused)

    def longest(self, since):
        """Returns the longest time in seconds without an acknowledged write since the given time."""
        times = [since, *sorted(at for at in self.times if at > since)]
        return max(b - a for a, b in zip(times, times[1:]))

    def look(self):
        """Reads all numbers that may have been written, after the clients have stopped."""
        before = self.refusals.total()
        reader = self.clients[0]
        for client in self.clients:
            for number in client.acknowledged:
                reader.read(number, True)
            for number in client.unsure:
                reader.read(number, False)
        reader.close()
        assert self.refusals.total() == before, "some numbers cannot be read"

    def check(self, *allowed):
        """Stops the clients. No response may be wrong and no write lost; a refusal must have one of these statuses, or "broken"
        for a broken connection."""
        self.stop()
        assert set(self.refusals) <= set(allowed), self.refusals
        self.look()
        assert not self.wrong, f"{len(self.wrong)} results are wrong or lost: {self.wrong[:5]}"
