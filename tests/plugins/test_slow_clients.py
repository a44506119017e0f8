# SPDX-License-Identifier: Apache-2.0
"""Clients that are slower than the backends keep no backend connection and no backend process busy."""
import contextlib
import pathlib
import signal
import threading

import pytest

import php_fpm
from backend import Backend, response
from monkey import PROTOCOLS
from proc import wait_until

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
needs_fpm = pytest.mark.skipif(not php_fpm.PROGRAM, reason="there is no php-fpm")

SIZE = 3_000_000
BODY = b"".join(b"%07d\n" % i for i in range(SIZE // 8))
HUGE = BODY * 12  # more than the kernel's buffers hold


class CountingBackend(Backend):
    """Responds to /big with `body`, and counts the responses that it has sent completely."""

    def __init__(self, fields=(), body=BODY, **how):
        self.fields, self.body, self.sent = fields, body, 0
        super().__init__(self._answer, **how)

    def _answer(self, request):
        if request.target != "/big":
            return response("quick")
        return self._send()

    def _send(self):
        if ("Transfer-Encoding", "chunked") in self.fields:
            yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            for at in range(0, SIZE, 50_000):
                yield b"%x\r\n%b\r\n" % (50_000, BODY[at:at + 50_000])
            yield b"0\r\nX-Sum: 7\r\n\r\n"
        else:
            yield response(self.body, fields=self.fields)
        self.sent += 1


def upstream(address, keys=""):
    lines = "".join(f"    {key}\n" for key in keys.splitlines())
    return f"[UPSTREAM]\n    Name group\n    Server {address}\n{lines}"


def spool_bytes(server):
    """Returns the total size of the unlinked files in SpoolFolder that the workers hold open."""
    total = 0
    for pid in server.workers:
        for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if "(deleted)" in str(fd.readlink()) and "/spool/" in str(fd.readlink()):
                    total += fd.stat().st_blocks * 512
    return total


@pytest.fixture
def proxy(monkey, tmp_path):
    spool = tmp_path / "spool"
    spool.mkdir()
    spool.chmod(0o777)

    def start(backend, keys="", options="", server="", **how):
        return monkey(plugins=["proxy"], workers=1, server=f"SpoolFolder {spool}\n{server}",
                      sections=upstream(backend.address, keys) + f"[ROUTES]\n    /* proxy http://group {options}\n", **how)

    return start


# ---- Downloads ----

@every_protocol
@pytest.mark.parametrize("fields", [(), [("Transfer-Encoding", "chunked")]])
def test_slow_readers_hold_no_backend_connection(proxy, fields):
    """The backend sends all responses although no client reads; then each client receives its complete response."""
    with CountingBackend(fields) as backend, contextlib.ExitStack() as stack:
        server = proxy(backend, "MaxConnections 2")
        slow = [stack.enter_context(server.connect(receive_buffer=4096)) for _ in range(6)]
        for each in slow:
            each.ask("/big")
        wait_until(lambda: backend.sent == 6, "the backend has sent all responses")
        assert server.get("/quick").text == "quick"
        for each in slow:
            assert each.read().body == BODY
        assert spool_bytes(server) == 0


def test_slow_http2_streams_hold_no_backend_connection(proxy):
    """The client does not open its HTTP/2 windows."""
    with CountingBackend() as backend:
        server = proxy(backend, "MaxConnections 2")
        with server.connect(protocol="h2", receive_buffer=4096) as c:
            for _ in range(8):
                c.ask("/big")
            wait_until(lambda: backend.sent == 8, "the backend has sent all responses")
            assert server.get("/quick").text == "quick"


def test_fast_reader_uses_no_spool(proxy, tmp_path):
    with CountingBackend() as backend:
        server = proxy(backend)
        (tmp_path / "spool").rmdir()
        for _ in range(3):
            assert server.get("/big").body == BODY
    assert "Spool" not in server.log


@pytest.mark.parametrize("max_size", ["1M", "200K"])
def test_response_beyond_spool_limit_follows_client_speed(proxy, max_size):
    """The responses of one client may use a quarter of SpoolMax."""
    with CountingBackend(body=HUGE) as backend:
        server = proxy(backend, server=f"SpoolMax {max_size}")
        with server.connect(receive_buffer=4096) as slow:
            slow.ask("/big").begin()
            assert server.get("/quick").text == "quick"
            assert backend.sent == 0
            assert slow.read().body == HUGE
        assert backend.sent == 1


def test_spool_write_error_loses_no_data(proxy, tmp_path):
    with CountingBackend() as backend:
        server = proxy(backend)
        (tmp_path / "spool").rmdir()
        with server.connect(receive_buffer=4096) as slow:
            slow.ask("/big")
            wait_until(lambda: "cannot write the response to the SpoolFolder" in server.log, "an attempt to write")
            assert slow.read().body == BODY


def test_spool_is_freed_when_client_disconnects(proxy):
    with CountingBackend() as backend:
        server = proxy(backend)
        with server.connect(receive_buffer=4096) as slow:
            slow.ask("/big")
            wait_until(lambda: backend.sent == 1, "the backend has sent the response")
            wait_until(lambda: spool_bytes(server) > 0, "a part is in the spool")
        wait_until(lambda: spool_bytes(server) == 0, "the spool is empty")


@pytest.mark.processes("it reloads")
def test_spooled_response_survives_reload(proxy):
    with CountingBackend() as backend:
        server = proxy(backend)
        with server.connect(receive_buffer=4096) as slow:
            slow.ask("/big")
            wait_until(lambda: backend.sent == 1 and spool_bytes(server) > 0, "a part is in the spool")
            server.tell(signal.SIGHUP)
            server.err.wait_for("the new configuration serves")
            assert slow.read().body == BODY


def test_spooled_response_that_breaks_off_is_truncated(proxy):
    """The spooled part arrives, and then the client detects the truncation."""
    def script(connection):
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE + BODY[:SIZE // 2])
        sent.set()

    sent = threading.Event()
    with Backend(script=script) as backend:
        server = proxy(backend)
        with server.connect(receive_buffer=4096) as slow:
            slow.ask("/big")
            assert sent.wait(20)
            wait_until(lambda: spool_bytes(server) > 0, "a part is in the spool")
            slow.begin()
            got = slow.read_to_end()
        body = got.partition(b"\r\n\r\n")[2]
        assert len(body) > SIZE // 4 and (BODY[:SIZE // 2]).startswith(body)


def test_stream_option_disables_spool(proxy):
    with CountingBackend(body=HUGE) as backend:
        server = proxy(backend, options="stream")
        with server.connect(receive_buffer=4096) as slow:
            slow.ask("/big").begin()
            for _ in range(20):
                assert server.get("/quick").text == "quick"
            assert backend.sent == 0 and spool_bytes(server) == 0


# ---- Uploads ----

@every_protocol
@pytest.mark.parametrize("is_known", [True, False])
def test_slow_uploads_hold_no_backend_connection(proxy, is_known):
    with Backend() as backend, contextlib.ExitStack() as stack:
        server = proxy(backend, "MaxConnections 2")
        slow = [stack.enter_context(server.connect()) for _ in range(6)]
        for each in slow:
            each.ask("/up", "POST", [("Content-Length", "300000")] if is_known else [], streamed=not is_known)
            each.more(b"x" * 200_000)
        assert server.get("/quick").status == 200
        assert [request.target for request in backend.requests] == ["/quick"]
        for each in slow:
            each.more(b"y" * 100_000)
            if not is_known:
                each.done()
            assert each.read().status == 200
        assert {request.body for request in backend.requests[1:]} == {b"x" * 200_000 + b"y" * 100_000}
        assert {request.get("Content-Length") for request in backend.requests[1:]} == {"300000"}


def test_spooled_upload_is_retried_on_another_server(proxy, monkey):
    with Backend(lambda request: None) as closes, Backend() as backend:
        top = f"[UPSTREAM]\n    Name group\n    Server {closes.address}\n    Server {backend.address}\n"
        server = monkey(plugins=["proxy"], workers=1, sections=top + "[ROUTES]\n    /* proxy http://group\n")
        assert server.get("/", "PUT", body=b"x" * 300_000).status == 200
        assert closes.requests[0].body == backend.requests[0].body == b"x" * 300_000


# ---- PHP-FPM children ----

@needs_fpm
def test_slow_clients_hold_no_php_children(monkey, site, tmp_path):
    """With two PHP children and no MaxConnections, a client is served although six others read slowly and six upload slowly."""
    done = tmp_path / "done"
    done.mkdir(mode=0o777)
    site.add("big.php", f"<?php for ($i = 0; $i < {SIZE // 8}; $i++) printf(\"%07d\\n\", $i);"
                        f" file_put_contents('{done}/' . getmypid() . '-' . hrtime(true), '');")
    site.add("up.php", "<?php echo md5(file_get_contents('php://input'));")
    site.add("quick.php", "<?php echo 'quick';")
    with php_fpm.Fpm(tmp_path, children=2) as fpm, contextlib.ExitStack() as stack:
        server = monkey(plugins=["fastcgi"], sections=f"[ROUTES]\n    *.php fastcgi {fpm.address}\n")
        slow = [stack.enter_context(server.connect(receive_buffer=4096)) for _ in range(6)]
        uploads = [stack.enter_context(server.connect()) for _ in range(6)]
        for each in uploads:
            each.ask("/up.php", "POST", [("Content-Length", "100000")]).more(b"x" * 99_999)
        for each in slow:
            each.ask("/big.php")
        wait_until(lambda: len(list(done.iterdir())) == 6, "all scripts have ended")
        assert server.get("/quick.php").text == "quick"
        for each in slow:
            assert each.read().body == BODY
        for each in uploads:
            assert len(each.more(b"x").read().text) == 32


# ---- Clients that cancel their requests ----

OTHER = "127.0.0.2"  # the address of the second client
GATEWAYS = ["proxy http://group", "fastcgi group split=off", "scgi group split=off", "uwsgi group split=off"]


class BusyBackend(Backend):
    """Works on each request until `done`, and only then checks the connection, as a single-threaded program does."""

    def __init__(self, **how):
        self.all, self.cancelled, self.done = [], [], threading.Event()
        super().__init__(script=self._work, **how)

    def _work(self, connection):
        request = connection.recv(65536)
        if not request:
            return  # the client cancelled the request before the proxy sent it
        self.all.append(request)
        self.done.wait(20)
        if connection.recv(65536) == b"":
            self.cancelled.append(connection)

    @property
    def begun(self):
        return len(self.all)


def cancel(server, target="/", until=lambda: True):
    """Cancels a request once `until()` is true. If the protocol has streams, only the stream ends."""
    with server.connect() as c:
        c.ask(target)
        wait_until(until, "the request is in the intended state")
        if server.is_h2:
            c.cancel().ping()
            c.wait(lambda: not c.pings)


def check_share(server, backend):
    """The first address uses its full share of the connections; another address is still served."""
    n = backend.begun
    with server.connect() as c, server.connect(source=OTHER) as other:
        c.ask("/waits")
        other.ask("/other")
        wait_until(lambda: backend.begun == n + 1, "another client is served")
    assert b"/other" in backend.all[n]


@every_protocol
@pytest.mark.parametrize("route", GATEWAYS)
def test_cancelled_request_counts_until_backend_is_done(monkey, route):
    """One address may use half of the four connections, however often it cancels its requests."""
    with BusyBackend() as backend:
        server = monkey(plugins=[route.split()[0]], workers=1,
                        sections=upstream(backend.address, "MaxConnections 4") + f"[ROUTES]\n    /* {route}\n")
        for n in (1, 2):
            cancel(server, "/work", lambda n=n: backend.begun == n)
        for _ in range(2):
            check_share(server, backend)
        assert not any(b"/waits" in each for each in backend.all)
        backend.done.set()
        wait_until(lambda: len(backend.cancelled) == 4, "the backend was told of all four")
        with server.connect() as c:
            c.ask()
            wait_until(lambda: backend.begun == 5, "its connections are free again")


def test_cancelled_upload_counts_until_backend_is_done(proxy):
    with BusyBackend() as backend:
        server = proxy(backend, "MaxConnections 2", "stream")
        with server.connect() as c:
            c.ask("/", "POST", [("Content-Length", "1000")]).more(b"x" * 999)
            wait_until(lambda: backend.begun == 1, "the upload has started")
        check_share(server, backend)
        backend.done.set()


def test_disconnected_response_counts_until_backend_is_done(proxy):
    """The backend sends a response head and continues to work."""
    def script(connection):
        connection.recv(65536)
        begun.append(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
        done.wait(20)
        connection.sendall(b"0123456789")

    begun, done = [], threading.Event()
    with Backend(script=script) as backend:
        server = proxy(backend, "MaxConnections 2")
        with server.connect() as c:
            c.ask().read_head()
        with server.connect() as c, server.connect(source=OTHER) as other:
            c.ask()
            other.ask().read_head()
            assert len(begun) == 2
            done.set()
            assert other.read_exactly(10) == b"0123456789"
            assert c.read().body == b"0123456789"


def test_timed_out_request_counts_until_backend_is_done(proxy):
    with BusyBackend() as backend:
        server = proxy(backend, "MaxConnections 2\nMaxFails 0", "response_timeout=1s")
        assert server.get("/late").status == 504
        check_share(server, backend)
        backend.done.set()


UPGRADE = [("Connection", "Upgrade"), ("Upgrade", "chat")]


@pytest.mark.parametrize("is_open", [False, True])
def test_abandoned_tunnel_counts_until_backend_is_done(proxy, is_open):
    """The client disconnects before or after the backend has accepted the tunnel."""
    def script(connection):
        connection.recv(65536)
        begun.append(connection)
        if is_open:
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: chat\r\nConnection: upgrade\r\n\r\n")
        done.wait(20)

    begun, done = [], threading.Event()
    with Backend(script=script) as backend:
        server = proxy(backend, "MaxConnections 2")
        with server.connect(protocol="h1") as c:
            c.ask("/", fields=UPGRADE)
            wait_until(lambda: len(begun) == 1, "the backend has the request")
            if is_open:
                c.read_head()
        with server.connect(protocol="h1") as c, server.connect(source=OTHER, protocol="h1") as other:
            c.ask("/", fields=UPGRADE)
            other.ask("/", fields=UPGRADE)
            wait_until(lambda: len(begun) == 2, "another client is served")
            other.close()
            done.set()
            wait_until(lambda: len(begun) == 3, "the connection is free")


def test_cancelled_event_stream_is_noticed_with_next_event(proxy):
    def events(request):
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        try:
            for _ in range(1000):
                yield b"data: 1\n\n"
                more.wait(0.02)
        finally:
            ended.set()

    more, ended = threading.Event(), threading.Event()
    with Backend(lambda request: events(request) if request.target == "/events" else response("quick")) as backend:
        server = proxy(backend, "MaxConnections 1")
        with server.connect() as c:
            c.ask("/events").read_head()
        assert server.get("/quick").text == "quick"
        assert ended.wait(20)


@pytest.mark.processes("it reloads")
def test_reload_does_not_wait_for_cancelled_requests(proxy):
    with BusyBackend() as backend:
        server = proxy(backend, "MaxConnections 1")
        cancel(server, until=lambda: backend.begun == 1)
        old = server.workers
        server.tell(signal.SIGHUP)
        server.err.wait_for("the new configuration serves")
        wait_until(lambda: not set(old) & set(server.workers), "the old worker has ended")
        with server.connect() as c:
            c.ask()
            wait_until(lambda: backend.begun == 2, "the connection is free")
        backend.done.set()


@needs_fpm
@every_protocol
def test_cancelling_clients_hold_only_their_share_of_php_children(monkey, site, tmp_path):
    """A script does not notice the disconnect until it writes output."""
    work = tmp_path / "work"
    work.mkdir(mode=0o777)
    work.chmod(0o777)
    site.add("slow.php", f"<?php touch('{work}/' . hrtime(true)); while (!file_exists('{work}/done')) {{ usleep(9999); clearstatcache(); }}")
    site.add("quick.php", "<?php echo 'quick';")
    with php_fpm.Fpm(tmp_path, children=2) as fpm:
        server = monkey(plugins=["fastcgi"], workers=1, sections=upstream(fpm.address, "MaxConnections 2")
                        + "[ROUTES]\n    *.php fastcgi group\n")
        cancel(server, "/slow.php", lambda: any(work.iterdir()))
        with server.connect() as c, server.connect(source=OTHER) as other:
            c.ask("/slow.php")
            assert other.get("/quick.php").text == "quick"
        assert len(list(work.iterdir())) == 1
        (work / "done").touch()
        assert server.get("/quick.php").text == "quick"


# ---- Spool limits ----

@pytest.mark.parametrize("keys, location, has_warning", [
    ("[SERVER]\n    MaxBodySize 6G\n[HOST]\n    DocumentRoot .\n", "2:17", True),
    ("[HOST]\n    DocumentRoot .\n    MaxBodySize 0\n", "3:17", True),
    ("[HOST]\n    DocumentRoot .\n[LOCATION]\n    Path /up/*\n    MaxBodySize 513M\n", "5:17", True),
    ("[SERVER]\n    SpoolMax 12G\n[HOST]\n    DocumentRoot .\n    MaxBodySize 6G\n", "", False),
    ("[SERVER]\n    SpoolMax 0\n[HOST]\n    DocumentRoot .\n    MaxBodySize 6G\n", "", False),
    ("[HOST]\n    DocumentRoot .\n    MaxBodySize 512M\n", "", False)])
@pytest.mark.parametrize("route", ["proxy http://127.0.0.1:1", "fastcgi 127.0.0.1:1 split=off", "scgi 127.0.0.1:1", "uwsgi 127.0.0.1:1"])
def test_body_limit_beyond_spool_limit_is_warned_of(run, tmp_path, keys, location, has_warning, route):
    conf = tmp_path / "monkey.conf"
    text = f"{keys}[PLUGINS]\n    Load {route.split()[0]}\n"
    conf.write_text(f"{text}[ROUTES]\n    /* {route}\n")
    done = run("-t", "-c", conf)
    assert done.code == 0 and ("half of SpoolMax" in done.err) == has_warning, done.err
    assert not has_warning or f"{conf}:{location}: warning" in done.err
    conf.write_text(f"{text}[ROUTES]\n    /* {route} stream\n")
    assert "half of SpoolMax" not in run("-t", "-c", conf).err


@every_protocol
@pytest.mark.parametrize("is_known", [True, False])
def test_body_beyond_client_share_of_spool_gets_413(proxy, is_known):
    with Backend() as backend:
        server = proxy(backend, server="SpoolMax 400K\nMaxBodySize 1M")
        with server.connect() as c:
            c.ask("/", "POST", [("Content-Length", "300000")] if is_known else [], streamed=not is_known)
            if not is_known:
                with contextlib.suppress(OSError):
                    c.more(b"x" * 300_000)
            assert c.read().status == 413
        assert server.get("/", "POST", body=b"x" * 190_000).status == 200
        assert len(backend.requests) == 1


@every_protocol
def test_full_spool_gets_503_with_retry_after(proxy):
    with Backend() as backend:
        server = proxy(backend, server="SpoolMax 400K\nMaxBodySize 1M")
        with server.connect() as first, server.connect() as second:
            first.ask("/", "POST", [("Content-Length", "131080")]).more(b"x" * 131_079)
            wait_until(lambda: spool_bytes(server) >= 120_000, "the first body is in the spool")
            second.ask("/", "POST", [("Content-Length", "190000")])
            with contextlib.suppress(OSError):
                second.more(b"x" * 189_999)
            refused = second.read()
            assert (refused.status, refused["Retry-After"]) == (503, "1")
            assert first.more(b"x").read().status == 200
        assert server.get("/", "POST", body=b"x" * 190_000).status == 200


def test_queue_timeout_gets_503_with_retry_after(proxy):
    with Backend(lambda request: None if gate.wait(20) else None) as backend:
        server = proxy(backend, "MaxConnections 1\nQueueTimeout 100ms")
        with server.connect() as first:
            first.ask("/held")
            wait_until(lambda: backend.requests, "the first request is served")
            refused = server.get("/")
            assert (refused.status, refused["Retry-After"]) == (503, "1")
            gate.set()


gate = threading.Event()
