# SPDX-License-Identifier: Apache-2.0
"""Servers with the metrics plugin, and the events of its live page."""
import json

from proc import wait_until

KEYS = """
[METRICS]
    Metrics /metrics
    Status  /status
    Live    /live
    Health  /healthz
    Ready   /readyz
"""


def starter(monkey, site):
    """Returns a function, for use as a fixture, that starts a server with the plugin."""
    site.add("index.html", "hello")

    def run(keys="", **how):
        return monkey(plugins=["metrics", *how.pop("plugins", [])], top=KEYS + keys + how.pop("top", ""), **how)

    return run


def status(server, path="/status"):
    reply = server.get(path)
    assert reply.status == 200 and reply["Content-Type"] == "application/json"
    return json.loads(reply.text)


class Stream:
    """The events of a live page. The first event is the history: next() stores it in `history` and returns the event after it."""

    def __init__(self, server, path="/live?events", **how):
        self.client = server.connect(**how)
        self.client.ask(path)
        self.head = self.client.read_head()
        self._text, self.history = b"", None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()

    def next(self):
        """Returns the next event, or None at a clean end of the body."""
        while b"\n\n" not in self._text:
            size = int(self.client.read_until(b"\r\n"), 16)
            self._text += self.client.read_exactly(size)
            assert self.client.read_exactly(2) == b"\r\n"
            if not size:
                assert not self._text, "the stream ended within an event"
                return None
        event, _, self._text = self._text.partition(b"\n\n")
        fields = dict(line.split(": ", 1) for line in event.decode().split("\n"))
        if not self.history:
            assert set(fields) == {"event", "data"} and fields["event"] == "history"
            self.history = json.loads(fields["data"])
            return self.next()
        assert set(fields) <= {"retry", "data"}
        return json.loads(fields["data"])


def taken(server):
    stream = Stream(server)
    if stream.head.status == 200:
        return stream
    stream.__exit__()
    return None


def history(server, has=lambda found: True):
    """Returns the history of a live page as soon as has(history) is true."""
    def find():
        with Stream(server) as stream:
            stream.next()
            if has(stream.history):
                return stream.history
            stream.next()  # this event arrives a second later
        return None

    return wait_until(find, "the history")
