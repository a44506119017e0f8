#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the user-space instructions per keep-alive request with callgrind.

    instructions.py PROGRAM [--what file|hello|proxied|limited|http2|grpc|broadcast] [--check FILE] [--write FILE] [--profile] [--recorder] [--tracing] [--otlp]

The server runs twice under valgrind, with few requests and with many. The difference between the instruction counts, divided by
the difference between the numbers of requests, is the cost of one request without startup and shutdown. The result for a program
and a request is reproducible, however busy the machine is.

--what: a file of 100 bytes; the `hello` handler of tools/bench/duda.c; a response of 100 bytes through `proxy`, also with
`MaxConnections 100` in an [UPSTREAM], and over HTTP/2 to the backend; a unary call of gRPC through `proxy`; or a
handler that publishes a message to 10 WebSockets.
--check compares the result with the number in FILE and fails if it grew by more than 3 %, or by more than 10 % if another compiler
built the program; --write stores it there, with the compiler.
--profile prints which functions the instructions belong to.
--recorder loads the plugin `recorder`; --tracing gives each request a trace, of which 1 % are sampled; --otlp also exports these traces.
"""
import argparse
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading

FEW, MANY = 200, 1200
REQUEST = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1:2001\r\n\r\n"
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\n" + b"x" * 100
WHAT = {"file": "a 100-byte file", "hello": "a handler of Duda", "proxied": "a response of 100 bytes through `proxy`",
        "limited": "a response of 100 bytes through `proxy` with `MaxConnections`",
        "http2": "a response of 100 bytes through `proxy` over HTTP/2", "grpc": "a unary call of gRPC through `proxy`",
        "broadcast": "a handler of Duda that publishes a message to 10 WebSockets"}
UPGRADE = (b"GET /room HTTP/1.1\r\nHost: 127.0.0.1:2001\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
           b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
MEMBERS, MESSAGE = 10, b"\x81\x19a message for all of them"


def read_response(sock, size):
    got = 0
    while got < size:
        piece = sock.recv(size - got)
        if not piece:
            sys.exit("instructions.py: the server closed the connection")
        got += len(piece)


def read_first_response(sock):
    """Reads one complete response and returns its length."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += sock.recv(65536)
    head, rest = data.split(b"\r\n\r\n", 1)
    if not head.startswith(b"HTTP/1.1 200 "):
        sys.exit(f"instructions.py: {head.splitlines()[0]!r} instead of a file")
    length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
    read_response(sock, length - len(rest))
    return len(head) + 4 + length


def broadcast(port, requests):
    """Publishes messages to subscribers. All subscribers receive a message before the next one is published."""
    with contextlib.ExitStack() as stack:
        publisher, *members = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
                               for _ in range(MEMBERS + 1)]
        for member in members:
            member.sendall(UPGRADE)
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += member.recv(1)
        for _ in range(requests):
            publisher.sendall(REQUEST % b"/say")
            read_first_response(publisher)
            for member in members:
                read_response(member, len(MESSAGE))


def ask(port, requests, request):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        sock.sendall(request)
        size = read_first_response(sock)
        for _ in range(requests - 1):
            sock.sendall(request)
            read_response(sock, size)


def serve_backend_connection(sock):
    """Serves one connection of the backend; requests are small and have no body."""
    with sock:
        data = b""
        while piece := sock.recv(65536):
            data += piece
            while b"\r\n\r\n" in data:
                data = data.split(b"\r\n\r\n", 1)[1]
                sock.sendall(RESPONSE)


# ---- HTTP/2 ----

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, WINDOW_UPDATE = 0, 1, 4, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4


def frame(kind, flags=0, stream=0, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def field(name, value):
    """A header in HPACK, neither indexed nor Huffman-coded."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


GRPC_TYPE = field(b"content-type", b"application/grpc")
CALL_HEAD = b"\x83\x86" + field(b":path", b"/bench.Service/Call") + field(b":authority", b"127.0.0.1:2001") + GRPC_TYPE + field(b"te", b"trailers")
MESSAGE_BODY = b"\0\0\0\0\x0a0123456789"


def frames(sock):
    """Yields (type, flags, stream) of each frame."""
    stream = sock.makefile("rb")
    while len(head := stream.read(9)) == 9:
        stream.read(int.from_bytes(head[:3], "big"))
        yield head[3], head[4], int.from_bytes(head[5:], "big")


def call_grpc(port, requests):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        sock.sendall(PREFACE + frame(SETTINGS) + frame(WINDOW_UPDATE, payload=(1 << 30).to_bytes(4, "big")))
        received = frames(sock)
        for i in range(requests):
            stream = 2 * i + 1
            sock.sendall(frame(HEADERS, END_HEADERS, stream, CALL_HEAD) + frame(DATA, END_STREAM, stream, MESSAGE_BODY))
            for kind, flags, number in received:
                if kind in (DATA, HEADERS) and number == stream and flags & END_STREAM:
                    break


def serve_http2_connection(sock):
    """Serves one connection of an HTTP/2 backend: requests with a body are calls of gRPC."""
    with sock:
        sock.recv(len(PREFACE), socket.MSG_WAITALL)
        sock.sendall(frame(SETTINGS))
        for kind, flags, stream in frames(sock):
            if kind == SETTINGS and not flags & ACK:
                sock.sendall(frame(SETTINGS, ACK))
            elif kind == HEADERS and flags & END_STREAM:
                sock.sendall(frame(HEADERS, END_HEADERS, stream, b"\x88" + field(b"content-type", b"text/plain") +
                                   field(b"content-length", b"100")) + frame(DATA, END_STREAM, stream, b"x" * 100))
            elif kind == DATA and flags & END_STREAM:
                sock.sendall(frame(HEADERS, END_HEADERS, stream, b"\x88" + GRPC_TYPE) + frame(DATA, 0, stream, MESSAGE_BODY) +
                             frame(HEADERS, END_HEADERS | END_STREAM, stream, field(b"grpc-status", b"0")))


def serve(listening, serve_one):
    while True:
        sock = listening.accept()[0]
        threading.Thread(target=serve_one, args=(sock,), daemon=True).start()


def start_backend(what):
    listening = socket.create_server(("127.0.0.1", 0))
    serve_one = serve_http2_connection if what in ("http2", "grpc") else serve_backend_connection
    threading.Thread(target=serve, args=(listening, serve_one), daemon=True).start()
    return listening.getsockname()[1]


def build_service(program, folder, name="bench", source="duda.c", objects=()):
    root, plugins = pathlib.Path(__file__).resolve().parents[2], pathlib.Path(program).parent / "plugins"
    service = f"{folder}/monkey-{name}.so"
    subprocess.run(["cc", "-std=gnu11", "-O2", "-fstack-clash-protection", "-fPIC", "-shared", "-o", service, root / "tools/bench" / source,
                    f"-I{root}/include", f"-I{root}/duda/include", f"-L{plugins}", *(f"-l:monkey-{each}.so" for each in ("duda", *objects)),
                    f"-Wl,-rpath,{plugins}"], check=True)
    return service


def sections(program, folder, what, backend):
    """Returns the configuration after [SERVER]."""
    host = f"[HOST]\n    DocumentRoot {folder}/www\n"
    if what in ("hello", "broadcast"):
        return f"[PLUGINS]\n    Load {build_service(program, folder)}\n{host}"
    if what == "file":
        return host
    limit = "    MaxConnections 100\n" if what == "limited" else ""
    return (f"[PLUGINS]\n    Load proxy\n[UPSTREAM]\n    Name behind\n    Server 127.0.0.1:{backend}\n{limit}{host}"
            f"[ROUTES]\n    /* proxy {'h2c' if what in ('http2', 'grpc') else 'http'}://behind\n")


def child_of(pid):
    """Returns the only worker of a master."""
    return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def run(program, folder, requests, configuration, client):
    """Runs a server under callgrind while client(port, requests) sends requests. `configuration` follows [SERVER]. Returns the count
    and the output file of its worker."""
    out = pathlib.Path(folder, f"callgrind.{requests}")
    conf = pathlib.Path(folder, "bench.conf")
    conf.write_text(
        "[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n    KeepAliveRequests unlimited\n"
        "    OpenFileCacheTTL 1h\n    LogLevel error\n" + configuration
    )
    command = ["valgrind", "-q", "--tool=callgrind", "--trace-children=yes", f"--callgrind-out-file={out}.%p"]
    server = subprocess.Popen([*command, program, "-c", str(conf)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    port = None
    for line in server.stdout:
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        if found:
            port = int(found[1])
            break
    if port is None:
        sys.exit("instructions.py: the server did not start")
    worker = child_of(server.pid)
    client(port, requests)
    server.send_signal(signal.SIGQUIT)
    server.wait(timeout=60)
    # The worker is a fork of the master and inherits the master's count.
    profile = pathlib.Path(f"{out}.{worker}")
    return int(re.search(r"(?m)^(?:summary|totals): (\d+)", profile.read_text())[1]), profile


def count(program, folder, configuration, client):
    """Returns the instructions per request, and the output file of the longer run."""
    few, _ = run(program, folder, FEW, configuration, client)
    many, profile = run(program, folder, MANY, configuration, client)
    return round((many - few) / (MANY - FEW)), profile


def client_for(what):
    if what == "grpc":
        return call_grpc
    request = REQUEST % (b"/hello" if what == "hello" else b"/100.html")
    return broadcast if what == "broadcast" else lambda port, requests: ask(port, requests, request)


# ---- Records ----

def compiler_of(program):
    """Returns the version of the compiler, which the program contains."""
    comment = subprocess.run(["readelf", "-p", ".comment", program], capture_output=True, text=True, check=True).stdout
    found = re.search(r"\]\s+(\S.*)", comment)
    return found[1].strip() if found else "unknown"


def read_records(path):
    """Returns {what: (number, compiler)}."""
    rows = [row.split(None, 2) for row in path.read_text().splitlines()] if path.exists() else []
    return {what: (int(number), compiler) for what, number, compiler in rows}


def write_record(path, what, cost, compiler):
    records = read_records(path) | {what: (cost, compiler)}
    path.write_text("".join(f"{each} {number} {built_by}\n" for each, (number, built_by) in sorted(records.items())))


def check_record(path, what, cost, compiler):
    if what not in read_records(path):
        sys.exit(f"{path} has no number for `{what}`: record it with --write")
    recorded, built_by = read_records(path)[what]
    slack = 3 if compiler == built_by else 10
    print(f"{recorded} recorded in {path}, with {built_by}")
    if cost * 100 > recorded * (100 + slack):
        sys.exit(f"this is more than {slack} % above the recorded number: find the reason, or record the new number with --write")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--what", choices=WHAT, default="file")
    parser.add_argument("--check", type=pathlib.Path)
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--recorder", action="store_true")
    parser.add_argument("--tracing", action="store_true")
    parser.add_argument("--otlp", action="store_true")
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/www")
        pathlib.Path(folder, "www", "100.html").write_text("x" * 100)
        backend = start_backend(options.what)
        configuration = sections(program, folder, options.what, backend)
        if options.recorder:
            configuration = f"[PLUGINS]\n    Load recorder\n[RECORDER]\n    File {folder}/recording\n{configuration}"
        if options.tracing or options.otlp:
            configuration = "[PLUGINS]\n    Load tracing\n[TRACING]\n    TraceContext on\n    Sample 1%\n" + configuration
        if options.otlp:
            configuration = f"[PLUGINS]\n    Load otlp\n[OTLP]\n    Endpoint http://127.0.0.1:{start_backend('file')}\n{configuration}"
        cost, profile = count(program, folder, configuration, client_for(options.what))
        print(f"{cost} instructions for one keep-alive request of {WHAT[options.what]}")
        if options.profile:
            subprocess.run(["callgrind_annotate", str(profile)], check=True)
    if options.write:
        write_record(options.write, options.what, cost, compiler_of(program))
    if options.check:
        check_record(options.check, options.what, cost, compiler_of(program))


if __name__ == "__main__":
    main()
