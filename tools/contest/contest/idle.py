# SPDX-License-Identifier: Apache-2.0
"""Idle connections: each has had one answer and stays open; what do they cost the server in memory?"""
import contextlib
import socket
import time

import psutil

SETTLE_SECONDS = 1.0  # what a server puts off until it is idle
ANSWER_SECONDS = 10
TOGETHER = 50  # connections that ask at the same time


class NotHeld(Exception):
    """The server did not keep the connections, or did not answer on them."""


class NotMeasurable(Exception):
    """The cost of the connections cannot be separated from other costs."""


def pss_kb(pids):
    """Proportional set size of all of them: shared pages are divided among the processes that share them."""
    total = 0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            total += psutil.Process(pid).memory_full_info().pss
    return total // 1024


def _body_at(data):
    """Where the body begins and how long it is to be; None before the head is complete."""
    at = data.find(b"\r\n\r\n")
    if at < 0:
        return None
    for line in data[:at].split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return at + 4, int(value)
    raise NotHeld("an answer without Content-Length")


def _answer(sock):
    """(status, body) of one answer with a length."""
    data = b""
    while not (place := _body_at(data)) or len(data) < sum(place):
        more = sock.recv(65536)
        if not more:
            raise NotHeld("the connection ended within an answer")
        data += more
    return int(data.split(None, 2)[1]), data[place[0]:sum(place)]


def _open_many(port, request, body, numbers):
    """Connections that ask all at once; every answer is compared."""
    opened = []
    try:
        for _ in numbers:
            opened.append(socket.create_connection(("127.0.0.1", port), timeout=ANSWER_SECONDS))
            opened[-1].sendall(request)
        for number, sock in zip(numbers, opened):
            status, got = _answer(sock)
            if status != 200 or got != body:
                raise NotHeld(f"a wrong answer on connection {number}: status {status}, {len(got)} bytes")
    except BaseException:
        for sock in opened:
            sock.close()
        raise
    return opened


def _closed(held):
    """How many of them the server has closed."""
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
    """{start_kb, pss_kb, idle_bytes} with n connections; `pids` is a function. Raises NotHeld."""
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
            raise NotHeld(f"it closed {gone} of {n} idle connections within {SETTLE_SECONDS:.0f} s")
        if after < before:
            raise NotMeasurable(f"its memory shrank from {before} to {after} KB while {n} connections came")
        return {"start_kb": before, "pss_kb": after, "idle_bytes": (after - before) * 1024 / n}
    except (OSError, ValueError) as error:
        raise NotHeld(f"connection {len(held)} of {n}: {error}") from None
    finally:
        for sock in held:
            sock.close()
