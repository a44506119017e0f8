# SPDX-License-Identifier: Apache-2.0
"""Clients that number their requests and record each result; the server that echoes the numbers is in numbered_backend.py.

    with NumberedServer(folder) as back, Clients(server) as clients:
        clients.more(20)
        back.kill()
        clients.check(allowed={502})
"""
import collections
import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numbered_backend
from client import BadReply, Closed
from monkey import SECONDS
from proc import wait_until

SIZES = (10, 3000, 70_000, 300_000)
HOWS = ("length", "chunked", "close")


class NumberedServer:
    """A server process on a unix socket or a unique address, so that no other program takes its port while it is down."""

    _addresses = itertools.count(1)

    def __init__(self, folder, unix=False):
        n = next(self._addresses)
        self._record = folder / f"numbers{n}"
        pid = os.getpid()
        self._at = f"unix:{folder}/numbered{n}" if unix else f"127.{100 + n % 100}.{pid >> 8 & 255}.{pid & 255}:0"
        self.process = None

    @property
    def address(self):
        return self._at

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()

    def start(self):
        if self._at.startswith("unix:") and os.path.exists(self._at[5:]):
            os.unlink(self._at[5:])
        self.process = subprocess.Popen([sys.executable, "-I", "-S", numbered_backend.__file__, str(self._record), self._at],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        address = self.process.stdout.readline().strip()
        assert address, "the server did not start"
        if self._at.endswith(":0"):
            self._at = f"{self._at[:-2]}:{address}"
        return self

    def kill(self):
        if self.process:
            self.process.kill()  # works whether or not the process has exited
            self.reap()

    def has_ended(self, seconds=0):
        """Has the process exited within this time?"""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.returncode is not None

    def reap(self):
        """Waits for the process to exit: a test has killed it, or it kills itself."""
        self.process.communicate(timeout=SECONDS)
        self.process = None

    def restart(self):
        self.kill()
        return self.start()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)
        wait_until(self.has_stopped, "the server is stopped")

    def has_stopped(self, seconds=0):
        """Is the process stopped within this time?"""
        end = time.monotonic() + seconds
        while not os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOHANG):
            if time.monotonic() >= end:
                return False
            time.sleep(0.005)
        return True

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def numbers(self, method):
        """Returns the numbers of all requests whose heads the server has received, including those before a restart."""
        lines = self._record.read_text().splitlines() if self._record.exists() else []
        return [int(line.split()[1]) for line in lines if line.startswith(f"{method} ")]


class Connection:
    """Sends requests over one connection and classifies each result."""

    def __init__(self, clients, protocol):
        self.clients, self.protocol, self.random = clients, protocol, random.Random(id(self))
        self.client = None

    def close(self):
        if self.client:
            self.client.close()
        self.client = None

    def plan(self):
        sizes = self.clients.sizes
        method = self.random.choice(self.clients.methods)
        upload = self.random.choice(sizes) if method != "GET" else 0
        return {"method": method, "upload": upload, "streamed": bool(upload) and self.random.random() < .5,
                "size": self.random.choice(sizes), "how": self.random.choice(self.clients.hows)}

    def send(self, number, method="GET", upload=0, streamed=False, size=100, how="length", fault=None):
        fields = [("X-Number", str(number)), ("X-Size", str(size)), ("X-How", how)] + [("X-Fault", fault)] * bool(fault)
        body = numbered_backend.content(number, upload)
        if not streamed:
            return self.client.ask("/", method, fields, body)
        self.client.ask("/", method, fields, streamed=True)
        for at in range(0, upload, 9000):
            self.client.more(body[at:at + 9000])
        return self.client.done()

    def judge(self, number, reply, size, how):
        if reply.status != 200:
            return reply.status
        whole = numbered_backend.content(number, size)
        if how == "close" and len(reply.body) < size and whole.startswith(reply.body):
            return "cut"  # without a length, neither Monkey nor this client can detect truncation
        right = reply["X-Number"] == str(number) and reply.body == whole
        return "ok" if right else f"wrong: {reply} {reply['X-Number']} for {number}: {reply.body[:40]}"

    def ask(self, number, **plan):
        """Returns "ok", a status, "cut" (truncated after the head), None to retry, or a description of a forbidden result."""
        self.client = self.client or self.clients.connect(self.protocol)
        self.has_head = False
        try:
            try:
                self.send(number, **plan)
            except OSError:
                if self.protocol == "h2" or not plan["upload"]:
                    raise
                # the response may precede the end of the request body
            reply = self.read()
            result = self.judge(number, reply, plan["size"], plan["how"])
            if reply.closes:
                self.close()
            return result
        except TimeoutError:
            self.close()
            return "lost: it hangs"
        except (Closed, OSError) as error:
            self.close()
            if getattr(error, "again", False):
                return None  # the server did not process the request: it is retried on a new connection
            return "cut" if self.has_head else f"lost: {self.protocol} {plan['method']} {error!r}"
        except BadReply as error:
            self.close()
            return f"wrong: {error!r}"

    def read(self):
        """Like read() of the clients, but sets `has_head` once the head of the final response has arrived."""
        client = self.client
        if self.protocol == "h2":
            stream = client.queue[0]
            client.wait(lambda: stream.final or stream.is_over)
            self.has_head = bool(stream.final)
            return client.read()
        read_head = client.read_head

        def note():
            reply = read_head()
            self.has_head = reply.status >= 200
            return reply

        client.read_head = note
        try:
            return client.read()
        finally:
            client.read_head = read_head

    def run(self, i):
        while not self.clients.is_over.is_set():
            if self.random.random() < .1:
                self.leave()
            self.clients.note(i, self.request(**self.plan()))
            if self.random.random() < .1:
                self.close()
        self.close()

    def leave(self):
        """Sends a request and disconnects before or during the response."""
        with contextlib.suppress(OSError, BadReply):
            self.client = self.client or self.clients.connect(self.protocol)
            self.send(next(self.clients.numbers), size=300_000)
            if self.random.random() < .5:
                self.client.begin()
            if self.protocol == "h2":
                self.client.cancel()
                self.client.queue.clear()
                return
        self.close()

    def request(self, **plan):
        plan = {"method": "GET", "upload": 0, "size": 100, "how": "length"} | plan
        while (result := self.ask(next(self.clients.numbers), **plan)) is None:
            pass
        return result


class Clients:
    """Sends requests without a pause, each client in its own thread."""

    def __init__(self, server, protocols=("h1", "h1", "h1", "h2", "h2"), methods=("GET", "GET", "POST", "PUT"), sizes=SIZES,
                 hows=HOWS):
        self.server, self.methods, self.sizes, self.hows = server, methods, sizes, hows
        self.numbers, self.is_over = itertools.count(1000), threading.Event()
        self.results, self.counts = collections.Counter(), [0] * len(protocols)
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=Connection(self, protocol).run, args=(i,), daemon=True)
                         for i, protocol in enumerate(protocols)]

    def connect(self, protocol):
        return self.server.connect(protocol=protocol)

    def note(self, i, result):
        with self._lock:
            self.results[result] += 1
            self.counts[i] += 1

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self.more(2)

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.is_over.set()
        for thread in self._threads:
            thread.join(SECONDS)
            assert not thread.is_alive(), "a client hangs"

    def more(self, n):
        """Waits until each client has `n` more results."""
        goals = [count + n for count in self.counts]
        wait_until(lambda: all(have >= goal for have, goal in zip(self.counts, goals)), f"{n} more results")
        return self

    def ask(self, protocol="h1", **plan):
        """Sends one additional request and returns its result."""
        connection = Connection(self, protocol)
        try:
            return connection.request(**plan)
        finally:
            connection.close()

    def check(self, *allowed):
        """Stops the clients; each result must be "ok" or one of the given ones."""
        self.stop()
        wrong = {each: n for each, n in self.results.items() if each not in ("ok", *allowed)}
        assert not wrong, f"{wrong} of {self.results}"
        assert self.results["ok"] > len(self.counts), self.results
        return self.results
