# SPDX-License-Identifier: Apache-2.0
"""A backend that echoes the number of each request, and fails in the phase that the request names.

As a separate program (python -S numbered_backend.py RECORD unix:/path|ADDRESS:PORT) it can be killed and frozen; see
numbered_clients.py for its clients. Request headers:

    X-Number   the number, echoed in a header; all bodies are generated from it
    X-Size     size of the response body
    X-How      framing of the response body: length (default), chunked or close
    X-Fault    HOW-WHERE: kill, stop or close; content, silent, head, body or reuse

The program imports few modules, because tests start it often.
"""
import os
import signal
import socket
import sys
import threading

FAULTS = [f"{how}-{phase}" for how in ("kill", "stop", "close") for phase in ("content", "silent", "head", "body", "reuse")]


def content(number, size):
    """Returns the body for a number; no piece of it occurs in the body of another number."""
    part = b"<%d>" % number
    return (part * (size // len(part) + 1))[:size]


def chunks(data, size=7000):
    pieces = [data[i:i + size] for i in range(0, len(data), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


class Disconnected(Exception):
    """The peer closed the connection, or the backend closed it on purpose."""


class Connection:
    def __init__(self, sock, record):
        self.sock, self.record, self.got, self.fault_next = sock, record, b"", None

    def fill(self):
        data = self.sock.recv(1 << 18)
        if not data:
            raise Disconnected
        if self.fault_next:
            self.fail(self.fault_next)
        self.got += data

    def fail(self, how):
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif how == "stop":
            # Signals this thread, not the process: otherwise this thread would keep running until another one takes the
            # signal. After SIGCONT, execution continues here.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        else:
            raise Disconnected

    def until(self, mark):
        while mark not in self.got:
            self.fill()
        part, _, self.got = self.got.partition(mark)
        return part

    def exactly(self, size):
        while len(self.got) < size:
            self.fill()
        part, self.got = self.got[:size], self.got[size:]
        return part

    def read_chunks(self):
        parts = []
        while size := int(self.until(b"\r\n"), 16):
            parts.append(self.exactly(size))
            self.exactly(2)
        self.until(b"\r\n")
        return b"".join(parts)

    def read_content(self, fields, fault):
        if fault == "content":
            while not self.got:
                self.fill()
            return None
        if fields.get("transfer-encoding"):
            return self.read_chunks()
        return self.exactly(int(fields.get("content-length", 0)))

    def serve(self):
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        how, _, phase = fields.get("x-fault", "").partition("-")
        number = int(fields.get("x-number", 0))
        os.write(self.record, f"{lines[0].split()[0]} {number}\n".encode())
        received = self.read_content(fields, phase)
        if phase in ("content", "silent"):
            self.fail(how)
        if phase == "content":
            raise Disconnected
        is_right = received is None or received == content(number, len(received))
        framing = fields.get("x-how", "length")
        head, body = self.answer(number, int(fields.get("x-size", 100)), framing, is_right)
        whole = head + body
        if phase in ("head", "body"):
            cut = len(head) // 2 if phase == "head" else len(head) + len(body) // 2
            self.sock.sendall(whole[:cut])
            self.fail(how)
            whole = whole[cut:]
        self.sock.sendall(whole)
        self.fault_next = how if phase == "reuse" else None
        if framing == "close":
            raise Disconnected

    def answer(self, number, size, framing, is_right):
        body, name = content(number, size), {"close": "Connection: close", "chunked": "Transfer-Encoding: chunked"}
        head = f"HTTP/1.1 {'200 OK' if is_right else '418 Mixed up'}\r\nX-Number: {number}\r\n" \
               f"{name.get(framing) or f'Content-Length: {size}'}\r\n\r\n"
        return head.encode(), chunks(body) if framing == "chunked" else body

    def run(self):
        try:
            while True:
                self.serve()
        except (Disconnected, OSError):
            self.sock.close()


def main(record, at):
    listening = socket.socket(socket.AF_UNIX if at.startswith("unix:") else socket.AF_INET)
    if at.startswith("unix:"):
        listening.bind(at.removeprefix("unix:"))
    else:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        address, _, port = at.partition(":")
        listening.bind((address, int(port)))
    listening.listen(128)
    output = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    name = listening.getsockname()
    print(name[1] if isinstance(name, tuple) else name, flush=True)
    while True:
        sock, _ = listening.accept()
        threading.Thread(target=Connection(sock, output).run, daemon=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
