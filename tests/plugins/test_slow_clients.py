# SPDX-License-Identifier: Apache-2.0
"""Clients that are slower than the servers behind ours hold neither a connection nor a process of these."""
import contextlib
import pathlib
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
HUGE = BODY * 12  # more than the buffers of the kernel hold


class Counting(Backend):
    """Answers /big with SIZE bytes, and knows how many of these responses it has sent to their last byte."""

    def __init__(self, fields=(), body=BODY, **how):
        self.fields, self.body, self.sent = fields, body, 0
        super().__init__(self._answer, **how)

    def _answer(self, asked):
        if asked.target != "/big":
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
    """Of files without a name that its workers have in the SpoolFolder."""
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


# ---- Readers ----

@every_protocol
@pytest.mark.parametrize("fields", [(), [("Transfer-Encoding", "chunked")]])
def test_clients_that_read_slowly_hold_no_connection(proxy, fields):
    """All responses leave the backend although no client reads; then each client gets its whole response."""
    with Counting(fields) as backend, contextlib.ExitStack() as stack:
        server = proxy(backend, "MaxConnections 2")
        slow = [stack.enter_context(server.connect(receive_buffer=4096)) for _ in range(6)]
        for each in slow:
            each.ask("/big")
        wait_until(lambda: backend.sent == 6, "all responses have left the server behind")
        assert server.get("/quick").text == "quick"
        for each in slow:
            assert each.read().body == BODY
        assert spool_bytes(server) == 0


def test_streams_of_one_connection_hold_no_connection(proxy):
    """Not even the windows of HTTP/2 are opened."""
    with Counting() as backend:
        server = proxy(backend, "MaxConnections 2")
        with server.connect(protocol="h2", receive_buffer=4096) as c:
            for _ in range(8):
                c.ask("/big")
            wait_until(lambda: backend.sent == 8, "all responses have left the server behind")
            assert server.get("/quick").text == "quick"


def test_a_client_that_keeps_up_does_not_touch_the_spool(proxy, tmp_path):
    with Counting() as backend:
        server = proxy(backend)
        (tmp_path / "spool").rmdir()
        for _ in range(3):
            assert server.get("/big").body == BODY
    assert "Spool" not in server.log


@pytest.mark.parametrize("max_size", ["1M", "200K"])
def test_a_response_that_does_not_fit_goes_on_at_the_speed_of_its_client(proxy, max_size):
    """A quarter of SpoolMax is for the responses of one client."""
    with Counting(body=HUGE) as backend:
        server = proxy(backend, server=f"SpoolMax {max_size}")
        with server.connect(receive_buffer=4096) as slow:
            slow.ask("/big").begin()
            assert server.get("/quick").text == "quick"
            assert backend.sent == 0
            assert slow.read().body == HUGE
        assert backend.sent == 1


def test_a_disk_that_is_gone_costs_no_byte(proxy, tmp_path):
    with Counting() as backend:
        server = proxy(backend)
        (tmp_path / "spool").rmdir()
        with server.connect(receive_buffer=4096) as slow:
            slow.ask("/big")
            wait_until(lambda: "cannot write its response to the SpoolFolder" in server.log, "it was tried")
            assert slow.read().body == BODY


def test_a_client_that_leaves_gives_its_spool_back(proxy):
    with Counting() as backend:
        server = proxy(backend)
        with server.connect(receive_buffer=4096) as slow:
            slow.ask("/big")
            wait_until(lambda: backend.sent == 1, "the response has left the server behind")
            wait_until(lambda: spool_bytes(server) > 0, "a part of it is in the spool")
        wait_until(lambda: spool_bytes(server) == 0, "the spool is empty")


def test_a_response_that_breaks_off_is_cut_behind_what_came(proxy):
    """What was spooled arrives; then the client sees that it is not all."""
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
            wait_until(lambda: spool_bytes(server) > 0, "a part of it is in the spool")
            slow.begin()
            got = slow.read_to_end()
        body = got.partition(b"\r\n\r\n")[2]
        assert len(body) > SIZE // 4 and (BODY[:SIZE // 2]).startswith(body)


def test_a_route_with_stream_is_not_spooled(proxy):
    with Counting(body=HUGE) as backend:
        server = proxy(backend, options="stream")
        with server.connect(receive_buffer=4096) as slow:
            slow.ask("/big").begin()
            for _ in range(20):
                assert server.get("/quick").text == "quick"
            assert backend.sent == 0 and spool_bytes(server) == 0


# ---- Uploads ----

@every_protocol
@pytest.mark.parametrize("is_known", [True, False])
def test_clients_that_upload_slowly_hold_no_connection(proxy, is_known):
    with Backend() as backend, contextlib.ExitStack() as stack:
        server = proxy(backend, "MaxConnections 2")
        slow = [stack.enter_context(server.connect()) for _ in range(6)]
        for each in slow:
            each.ask("/up", "POST", [("Content-Length", "300000")] if is_known else [], streamed=not is_known)
            each.more(b"x" * 200_000)
        assert server.get("/quick").status == 200
        assert [asked.target for asked in backend.asked] == ["/quick"]
        for each in slow:
            each.more(b"y" * 100_000)
            if not is_known:
                each.done()
            assert each.read().status == 200
        assert {asked.body for asked in backend.asked[1:]} == {b"x" * 200_000 + b"y" * 100_000}
        assert {asked.get("Content-Length") for asked in backend.asked[1:]} == {"300000"}


def test_a_spooled_upload_is_repeated_at_another_server(proxy, monkey):
    with Backend(lambda asked: None) as closes, Backend() as backend:
        top = f"[UPSTREAM]\n    Name group\n    Server {closes.address}\n    Server {backend.address}\n"
        server = monkey(plugins=["proxy"], workers=1, sections=top + "[ROUTES]\n    /* proxy http://group\n")
        assert server.get("/", "PUT", body=b"x" * 300_000).status == 200
        assert closes.asked[0].body == backend.asked[0].body == b"x" * 300_000


# ---- Children of PHP-FPM ----

@needs_fpm
def test_slow_clients_hold_no_children_of_php(monkey, site, tmp_path):
    """Two children, and no MaxConnections: six slow readers and six slow uploads, and a seventh client is served."""
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
