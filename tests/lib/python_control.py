# SPDX-License-Identifier: Apache-2.0
"""Changes a running server; test_python_control.py runs it: python_control.py CERTIFICATE KEY CERTIFICATE KEY. Prints `end` if all
assertions hold."""
import http.client
import socket
import ssl
import sys
import threading
import time

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

import libmonkey

PAIRS = [open(file, encoding="ascii").read() for file in sys.argv[1:]]
LONG = 30  # seconds; every operation takes less

server = libmonkey.Server(on_log=lambda level, text: None)
rejected = set()


@server.route("GET /")
def show(request, response):
    response.set("X-A", "b")
    response.remove("x-a")
    response.set("Content-Type", "text/html")
    response.remove("Content-Type")
    return repr((request.version, request.cookie("session"), request.cookie("none")))


@server.route("POST /trailers", content=True)
def show_trailers(request, response):
    before = request.trailers()
    response.add_trailer("X-Count", str(len(before)))
    yield repr(before)


@server.route("GET /listen")
def listen(_request, _response):
    return str(server.listen("127.0.0.1:0"))


@server.websocket("/ping", subprotocols="chat")
def ping(ws):
    def begin(data):
        if data == "abort":
            ws.abort()
        else:
            ws.ping(b"\0data")

    ws.on_message = begin
    ws.on_pong = lambda data: ws.send(repr((data, ws.subprotocol)))


def get(port, path="/", context=None, timeout=LONG):
    make = http.client.HTTPSConnection if context else http.client.HTTPConnection
    connection = make("127.0.0.1", port, timeout=timeout, **({"context": context} if context else {}))
    try:
        connection.request("GET", path, headers={"Cookie": "a=b; session=abc"})
        response = connection.getresponse()
        return response.read().decode(), response
    finally:
        connection.close()


def serial(port):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), LONG) as plain, context.wrap_socket(plain, server_hostname="localhost") as client:
        return ssl.DER_cert_to_PEM_cert(client.getpeercert(binary_form=True))


def fails(call, *words):
    try:
        call()
    except libmonkey.Error as problem:
        assert all(word in str(problem) for word in words), problem
        return True
    return False


def accepts(address):
    assert address == "127.0.0.1", address
    if "broken" in rejected:
        raise RuntimeError("expected")
    return address not in rejected


def check_setup():
    assert libmonkey.version().startswith("2.")
    for attempt in (server.pause_accepting, server.resume_accepting, lambda: server.unlisten("127.0.0.1:1"),
                    lambda: server.replace_certificate(PAIRS[0], PAIRS[1])):
        assert fails(attempt)  # the server is not running
    assert fails(lambda: server.add_certificate("no certificate"))
    assert fails(lambda: server.add_files({"no slash": b"x"}))
    server.add_certificate(PAIRS[0], PAIRS[1])
    server.add_files({"/static.txt": "text \xe9", "/data/index.html": b"<p>"})
    server.set_accept_filter(accepts)


def check_listeners(port):
    assert get(port)[0] == "('1.1', 'abc', None)" and get(port)[1].getheader("Content-Type").startswith("text/plain")
    assert get(port)[1].getheader("X-A") is None
    assert (get(port, "/static.txt")[0], get(port, "/data/")[0]) == ("text \xe9", "<p>")
    another = int(get(port, "/listen")[0])
    assert sorted(server.addresses())[0].startswith("127.0.0.1:") and f"127.0.0.1:{another}" in server.addresses()
    assert get(another)[0]
    server.unlisten(f"127.0.0.1:{another}")
    assert f"127.0.0.1:{another}" not in server.addresses() and fails(lambda: server.unlisten(f"127.0.0.1:{another}"))
    wait_until(lambda: is_refused(another))


def wait_until(condition):
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_refused(port):
    try:
        socket.create_connection(("127.0.0.1", port), LONG).close()
        return False
    except ConnectionRefusedError:
        return True


def is_dropped(port):
    try:
        get(port)
        return False
    except (OSError, http.client.HTTPException):
        return True


def check_accepting(port):
    server.pause_accepting()
    time.sleep(0.2)  # each worker pauses in its next iteration
    results = []
    threads = [threading.Thread(target=lambda: results.append(get(port))) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    assert results == []
    server.resume_accepting()
    for thread in threads:
        thread.join()
    assert len(results) == 3
    for reason in ("127.0.0.1", "broken"):
        rejected.add(reason)
        assert is_dropped(port)
        rejected.clear()
    assert get(port)[0]


def check_certificates():
    port = server.listen("127.0.0.1:0", tls=True)
    wait_until(lambda: not is_refused(port))
    assert serial(port) in PAIRS[0]
    server.replace_certificate(PAIRS[2], PAIRS[3])
    assert serial(port) in PAIRS[2]
    assert fails(lambda: server.replace_certificate(PAIRS[0], PAIRS[3])) and fails(lambda: server.replace_certificate("x", name="none"))
    assert serial(port) in PAIRS[2]


def check_trailers(port):
    with socket.create_connection(("127.0.0.1", port), LONG) as client:
        client.sendall(b"POST /trailers HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                       b"1\r\nx\r\n0\r\nX-Sum: 5\r\n\r\n")
        received = b""
        while data := client.recv(65536):
            received += data
    assert b"[('X-Sum', '5')]" in received and received.endswith(b"0\r\nX-Count: 1\r\n\r\n"), received


def check_websocket(port):
    with connect(f"ws://127.0.0.1:{port}/ping", subprotocols=["chat"], open_timeout=LONG) as client:
        client.send("ping")
        assert client.recv(LONG) == "(b'\\x00data', 'chat')"
        client.send("abort")
        try:
            client.recv(LONG)
            raise AssertionError("not aborted")
        except ConnectionClosed as problem:
            assert problem.rcvd is None


def check_successor(port):
    sockets = server.listener_sockets()
    assert {s.getsockname()[1] for s in sockets} >= {port}
    with libmonkey.Server() as successor:
        successor.route("GET /")(lambda request, response: "successor")
        for s in sockets:
            if s.getsockname()[1] == port:
                successor.listen_socket(s)
        successor.start(1)
        server.stop(1)
        server.wait()
        assert get(port)[0] == "successor"


def main():
    check_setup()
    port = server.listen("127.0.0.1:0")
    server.start(2)
    check_listeners(port)
    check_accepting(port)
    check_certificates()
    check_trailers(port)
    check_websocket(port)
    check_successor(port)
    server.close()
    for attempt in (server.addresses, server.listener_sockets, server.pause_accepting, server.listen, lambda: server.unlisten("127.0.0.1:1"),
                    lambda: server.replace_certificate(PAIRS[0]), lambda: server.add_files({}), lambda: server.set_accept_filter(accepts)):
        assert fails(attempt, "the server was closed")
    print("end", flush=True)


main()
