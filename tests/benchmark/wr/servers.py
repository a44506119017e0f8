# SPDX-License-Identifier: Apache-2.0
"""Test servers with one known behavior each: servers.py KIND [NUMBER]. Prints its port; some kinds print more."""
import ctypes
import mmap
import os
import signal
import socket
import struct
import sys
import threading
import time

BODY = b"x" * 100
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + BODY


def burn(ms):
    """Uses `ms` milliseconds of CPU time, no matter how busy the machine is."""
    until = time.thread_time() + ms / 1000
    while time.thread_time() < until:
        pass


def listen(host="127.0.0.1", port=0):
    listener = socket.create_server((host, port), backlog=512)
    return listener, listener.getsockname()[1]


def say(*words):
    print(*words, flush=True)


def receive(connection):
    try:
        return connection.recv(65536)
    except OSError:
        return b""


def answer(connection, before=lambda: None):
    """Serves all requests of one connection."""
    with connection:
        held = b""
        while piece := receive(connection):
            held += piece
            while b"\r\n\r\n" in held:
                head, held = held.split(b"\r\n\r\n", 1)
                before()
                try:
                    connection.sendall(ANSWER)
                except OSError:
                    return
                if b"close" in head.lower() or b"HTTP/1.0" in head:
                    return


def plain(listener, before=lambda: None):
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0], before), daemon=True).start()


def slow(ms):
    """Each request uses the given amount of CPU time."""
    listener, port = listen()
    say(port)
    plain(listener, lambda: burn(ms))


def forking(ms):
    """Forks a child for each connection. The child uses CPU time and exits; no process reaps it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener, port = listen()
    say(port)
    while True:
        connection = listener.accept()[0]
        if os.fork() == 0:
            burn(ms)
            answer(connection)
            os._exit(0)
        connection.close()


def burner(ms, has_child=False):
    """Starts a child that uses CPU time for each byte it reads, and passes the byte on. Returns its PID and input."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(reader)
        return pid, writer
    os.close(writer)
    grandchild = burner(ms) if has_child else None
    while os.read(reader, 1):
        if grandchild:
            os.write(grandchild[1], b"x")
        burn(ms)
    os._exit(0)


def family(ms):
    """Starts two children, one of which has a child. All three use CPU time for each request; the responding process does not.
    """
    listener, port = listen()
    children = [burner(ms, True), burner(ms)]
    say(port, *(pid for pid, _ in children))
    plain(listener, lambda: [os.write(writer, b"x") for _, writer in children])


def at(host, port):
    """Listens on the given address."""
    listener, port = listen(host, int(port))
    say(port)
    plain(listener)


def swelling(mb):
    """Allocates the given amount of memory for each open connection before it responds."""
    listener, port = listen()
    say(port)
    while True:
        with listener.accept()[0] as connection:
            with mmap.mmap(-1, int(mb) << 20) as memory:
                memory.write(b"x" * (int(mb) << 20))
                while receive(connection):
                    connection.sendall(ANSWER)


def named(name):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
    listener, port = listen()
    say(port)
    plain(listener)


def dying(requests):
    """Exits after the given number of requests."""
    left = [int(requests)]

    def count():
        left[0] -= 1
        if left[0] < 0:
            os._exit(3)

    listener, port = listen()
    say(port)
    plain(listener, count)


def failing():
    """Sends only error responses."""
    listener, port = listen()
    say(port)
    while True:
        with listener.accept()[0] as connection:
            receive(connection)
            connection.sendall(b"HTTP/1.1 500 Sorry\r\nContent-Length: 2\r\n\r\nno")


def saying(text):
    """Sends the given text, whatever the request, and closes the connection."""
    listener, port = listen()
    say(port)
    while True:
        with listener.accept()[0] as connection:
            receive(connection)
            connection.sendall(text.encode())


def hanging_up():
    """Resets the connection without reading the request."""
    listener, port = listen()
    say(port)
    while True:
        connection = listener.accept()[0]
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
        connection.close()


if __name__ == "__main__":
    kind, *words = sys.argv[1:]
    if kind in ("slow", "forking", "family"):
        words = [float(words[0])]
    {"slow": slow, "at": at, "swelling": swelling, "forking": forking, "family": family, "named": named, "dying": dying, "failing": failing,
     "saying": saying, "hanging-up": hanging_up}[kind](*words)
