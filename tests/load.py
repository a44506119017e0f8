# SPDX-License-Identifier: Apache-2.0
"""Clients that send requests without a pause and record every failure."""
import functools
import threading

from client import Client, Closed
from monkey import SECONDS
from proc import wait_until


class Load:
    """`with Load(server) as load: load.more(50); ...; assert not load.failures`

    Half of the clients keep their connection open as long as the server does; the others open one for each request. A connection
    that the server closes without announcing it counts as a failure. The clients use the server's protocol.
    """

    def __init__(self, server, target="/", keeping=2, single=2, content=None, listener=0, tls=None):
        self.target, self.content, self.is_h2 = target, content, server.is_h2
        # Uses the test's own ssl.SSLContext, or the default context of the server's clients.
        self.connect = functools.partial(Client, tls=tls) if tls else server.way(listener)
        self.connect = functools.partial(self.connect, server.addresses[listener])
        self.failures, self._stopped = [], threading.Event()
        plans = [self._keep] * keeping + [self._once] * single
        self.counts = [0] * len(plans)
        self._threads = [threading.Thread(target=self._run, args=(plan, i), daemon=True) for i, plan in enumerate(plans)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.more(1)
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self._stopped.set()
        for thread in self._threads:
            thread.join(SECONDS)
            assert not thread.is_alive(), "a client hangs"

    def more(self, n, seconds=SECONDS):
        """Waits until each client has received `n` more responses or has failed."""
        goals = [count + n for count in self.counts]
        wait_until(lambda: all(have >= goal for have, goal in zip(self.counts, goals)), f"{n} more responses", seconds)
        return self

    def check(self):
        """Stops the clients, and raises an exception if any request failed."""
        self.stop()
        assert not self.failures, f"{len(self.failures)} of {sum(self.counts)} requests failed: {self.failures[:5]}"
        return self

    def _run(self, plan, i):
        while not self._stopped.is_set():
            try:
                plan(i)
            except (AssertionError, OSError) as error:
                self.failures.append(repr(error))
                self.counts[i] += 1

    def _take(self, reply, i):
        assert reply.status == 200, repr(reply)
        assert self.content is None or reply.body == self.content, f"{len(reply.body)} wrong bytes"
        self.counts[i] += 1

    def _keep(self, i):
        with self.connect() as c:
            while not self._stopped.is_set():
                try:
                    reply = c.get(self.target)
                except Closed as error:
                    if error.again:  # the HTTP/2 server reports that it did not process the request, so a retry is safe
                        return
                    raise
                self._take(reply, i)
                if reply.closes:
                    c.expect_end()
                    return

    def _once(self, i):
        with self.connect() as c:
            reply = c.get(self.target, fields=[] if self.is_h2 else [("Connection", "close")])
            self._take(reply, i)
            if not self.is_h2:
                assert reply.closes, "the server closes without announcing it"
                c.expect_end()
