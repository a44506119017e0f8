# SPDX-License-Identifier: Apache-2.0
"""Opens idle connections, which receive one response each and stay open, and measures the memory that they cost the server."""
import contextlib
import socket
import time

import psutil

SETTLE_SECONDS = 1.0  # time for work that servers postpone until they are idle
ANSWER_SECONDS = 10
TOGETHER = 50  # connections opened at the same time


class NotHeld(Exception):
    """The server closed connections, or sent no response on them."""


class NotMeasurable(Exception):
    """The cost of the connections cannot be separated from other costs."""


def pss_kb(pids):
    """Returns the proportional set size of all processes, which divides shared pages among the processes that share them."""
    total = 0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            total += psutil.Process(pid).memory_full_info().pss
    return total // 1024


def _body_at(data):
    """Returns the offset and expected length of the body; None before the head is complete."""
    at = data.find(b"\r\n\r\n")
    if at < 0:
        return None
    for line in data[:at].split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return at + 4, int(value)
    raise NotHeld("a response without Content-Length")


def _read_response(sock):
    """Returns (status, body) of a response with Content-Length."""
    data = b""
    while not (place := _body_at(data)) or len(data) < sum(place):
        more = sock.recv(65536)
        if not more:
            raise NotHeld("the server closed the connection within a response")
        data += more
    return int(data.split(None, 2)[1]), data[place[0]:sum(place)]


def _open_many(port, request, body, numbers):
    """Opens connections with one request each at the same time, and compares every response."""
    opened = []
    try:
        for _ in numbers:
            opened.append(socket.create_connection(("127.0.0.1", port), timeout=ANSWER_SECONDS))
            opened[-1].sendall(request)
        for number, sock in zip(numbers, opened):
            status, got = _read_response(sock)
            if status != 200 or got != body:
                raise NotHeld(f"wrong response on connection {number}: status {status}, {len(got)} bytes")
    except BaseException:
        for sock in opened:
            sock.close()
        raise
    return opened


def _closed(held):
    """Returns how many of the connections the server has closed."""
    gone = 0
    for sock in held:
        sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            try:
                gone += not sock.recv(1)
            except ConnectionError:
                gone += 1
    return gone


def cost(pids, port, path, body, n):
    """Returns {start_kb, pss_kb, idle_bytes} for n connections; `pids` is a function. Raises NotHeld."""
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    held = []
    try:
        held += _open_many(port, request, body, [0])
        time.sleep(SETTLE_SECONDS / 2)
        before = pss_kb(pids())
        for number in range(1, n + 1, TOGETHER):
            held += _open_many(port, request, body, range(number, min(number + TOGETHER, n + 1)))
        time.sleep(SETTLE_SECONDS)
        after = pss_kb(pids())
        gone = _closed(held)
        if gone:
            raise NotHeld(f"the server closed {gone} of {n} idle connections within {SETTLE_SECONDS:.0f} s")
        if after < before:
            raise NotMeasurable(f"the server's memory shrank from {before} to {after} KB while {n} connections were opened")
        return {"start_kb": before, "pss_kb": after, "idle_bytes": (after - before) * 1024 / n}
    except (OSError, ValueError) as error:
        raise NotHeld(f"connection {len(held)} of {n}: {error}") from None
    finally:
        for sock in held:
            sock.close()
