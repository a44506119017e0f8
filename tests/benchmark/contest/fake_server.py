#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server that responds with `x` * 100 to every request, with optional faults.

    fake_server.py PORT [burn=MICROSECONDS] [wrong=N] [how=content|length|status] [crowd=N] [die=N] [words=TEXT] [heavy=BYTES]

The server sleeps briefly after each loop iteration, so that a client in a closed loop does not keep a core busy while other tests
run. burn: CPU time per response. wrong: every Nth response is wrong; with `crowd`, only while at least that many connections are
open. die: the server exits at the Nth response and prints `words`. heavy: memory that each connection uses.
"""
import contextlib
import selectors
import socket
import sys
import time

BODY = b"x" * 100
REST = 0.005


def answer(status=200, body=BODY):
    return b"HTTP/1.1 %d Whatever\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


FAULTS = {"content": answer(body=b"x" * 99 + b"y"), "length": answer(body=BODY + b"x"), "status": answer(404)}


class Server:
    def __init__(self, port, burn=0, wrong=0, how="content", crowd=0, die=0, heavy=0, words="fake: cannot go on like this"):
        self.burn, self.wrong, self.crowd, self.die = int(burn) / 1e6, int(wrong), int(crowd), int(die)
        self.words, self.fault, self.heavy, self.burdens = words, FAULTS[how], int(heavy), {}
        self.answers = 0
        self.buffers = {}
        self.selector = selectors.DefaultSelector()
        self.listener = socket.create_server(("127.0.0.1", int(port)), backlog=4096)
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ)

    def accept(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                sock, _ = self.listener.accept()
                self.buffers[sock] = b""
                self.burdens[sock] = b"x" * self.heavy
                self.selector.register(sock, selectors.EVENT_READ)

    def drop(self, sock):
        self.selector.unregister(sock)
        del self.buffers[sock], self.burdens[sock]
        sock.close()

    def next_answer(self):
        self.answers += 1
        if self.answers == self.die:
            sys.exit(self.words)
        end = time.thread_time() + self.burn
        while time.thread_time() < end:
            pass
        is_wrong = self.wrong and self.answers % self.wrong == 0 and len(self.buffers) >= self.crowd
        return self.fault if is_wrong else answer()

    def read(self, sock):
        try:
            data = sock.recv(65536)
            if not data:
                return self.drop(sock)
            head, end, rest = (self.buffers[sock] + data).partition(b"\r\n\r\n")
            self.buffers[sock] = rest if end else head
            if not end:
                return None
            sock.sendall(self.next_answer())
            if b"connection: close" in head.lower():
                self.drop(sock)
        except ConnectionError:
            self.drop(sock)
        return None

    def run(self):
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.listener:
                    self.accept()
                else:
                    self.read(key.fileobj)
            time.sleep(REST)


if __name__ == "__main__":
    Server(sys.argv[1], **dict(each.split("=", 1) for each in sys.argv[2:])).run()
