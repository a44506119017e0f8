# SPDX-License-Identifier: Apache-2.0
"""Server-sent events (text/event-stream), for handlers with `events=True`."""
from __future__ import annotations

import json
from typing import Any


class Event:
    """An event. `data` is text; anything else is sent as JSON. `retry_ms` is the reconnection delay of the client."""

    def __init__(self, data: Any = None, name: str | None = None, id: str | None = None, retry_ms: int | None = None) -> None:
        for field in (name, id):
            if field is not None and any(c in field for c in "\r\n\0"):
                raise ValueError("the name and the ID of an event must be one line")
        self.data, self.name, self.id, self.retry_ms = data, name, id, retry_ms

    def encode(self) -> bytes:
        """Returns the text of the event. An event without any field is a comment, which keeps the connection alive."""
        lines = []
        if self.name is not None:
            lines.append(f"event: {self.name}")
        if self.id is not None:
            lines.append(f"id: {self.id}")
        if self.retry_ms is not None:
            lines.append(f"retry: {int(self.retry_ms)}")
        if self.data is not None:
            text = self.data if isinstance(self.data, str) else json.dumps(self.data)
            lines += [f"data: {line}" for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
        return ("\n".join(lines or [":"]) + "\n\n").encode("utf-8", "surrogateescape")


def encode_event(value: Any) -> bytes:
    """Encodes what a handler yields: an Event, or the data of one."""
    return (value if isinstance(value, Event) else Event(value)).encode()
