# SPDX-License-Identifier: Apache-2.0
"""The option mirror copies a share of the requests to a second server, without affecting clients."""
import signal

import pytest

from backend import Backend, response
from monkey import PROTOCOLS
from proc import wait_until


@pytest.fixture
def pair():
    with Backend() as origin, Backend() as shadow:
        yield origin, shadow


@pytest.fixture
def mirrored(monkey, site):
    """`mirrored(origin, shadow, "share=10%")` starts the server."""
    def start(origin, shadow, options="", **how):
        return monkey(plugins=["proxy"], workers=1, sections=f"""
[ROUTES]
    /*  proxy http://{origin.address} mirror=http://{shadow.address} {options}
""", **how)

    return start


def silent(connection):
    while connection.recv(1 << 16):
        pass


def wait_for_copies(shadow, n):
    wait_until(lambda: len(shadow.requests) >= n, f"{n} copies")


@pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
def test_mirror_gets_identical_requests(mirrored, pair):
    origin, shadow = pair
    server = mirrored(*pair)
    assert server.get("/a?b", "POST", body=b"content", fields=[("X-Own", "1")]).status == 200
    wait_for_copies(shadow, 1)
    original, other = origin.requests[0], shadow.requests[0]
    assert (original.method, original.target, original.body) == (other.method, other.target, other.body) == ("POST", "/a?b", b"content")
    assert original.fields == other.fields


def test_mirror_reuses_connections(mirrored, pair):
    server = mirrored(*pair)
    with server.connect() as c:
        for n in range(1, 6):
            assert c.get("/").status == 200
            wait_for_copies(pair[1], n)
    assert pair[1].connections == 1


def test_mirror_responses_are_dropped(mirrored):
    with Backend() as origin, Backend(lambda request: response(b"x" * 3_000_000, "500 Oops")) as shadow:
        server = mirrored(origin, shadow)
        for n in range(3):
            assert server.get("/").status == 200
            wait_for_copies(shadow, n + 1)
        assert "Oops" not in server.err.text


def test_mirror_that_is_down_or_hangs_delays_nothing(mirrored):
    gone = Backend()
    gone.stop()
    with Backend() as origin, Backend(script=silent) as hangs:
        for shadow in (gone, hangs):
            server = mirrored(origin, shadow)
            assert [server.get("/").status for _ in range(20)] == [200] * 20
            server.tell(signal.SIGTERM)
            assert server.process.wait(20) == 0, "copies in progress do not delay the stop"


def test_mirror_copy_survives_client_disconnect(mirrored, pair):
    with Backend(script=silent) as waits:
        server = mirrored(waits, pair[1])
        with server.connect() as c:
            c.ask("/left")
            wait_for_copies(pair[1], 1)
        assert pair[1].requests[0].target == "/left"


def test_mirror_share_is_random(mirrored, pair):
    server = mirrored(*pair, "share=25%")
    with server.connect() as c:
        for _ in range(400):
            assert c.get("/").status == 200
    wait_until(lambda: len(pair[1].requests) > 40, "a share of the copies")
    assert len(pair[1].requests) < 200  # about 100 are expected; 200 is ten standard deviations above that


def test_mirror_does_not_copy_large_bodies(mirrored, pair):
    server = mirrored(*pair)
    assert server.get("/large", "POST", body=b"x" * 100_000).status == 200
    assert server.get("/next").status == 200
    wait_for_copies(pair[1], 1)
    assert [request.target for request in pair[1].requests] == ["/next"]


@pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
def test_mirror_does_not_copy_streamed_bodies(mirrored, pair, protocol):
    server = mirrored(*pair, options="stream")
    assert server.get("/small", "POST", body=b"content").status == 200
    assert server.get("/next").status == 200
    wait_for_copies(pair[1], 1)
    assert [request.target for request in pair[1].requests] == ["/next"]


def test_mirror_copies_in_progress_are_limited(mirrored):
    """The limit also bounds memory: a mirror that is slower than the traffic receives fewer copies."""
    with Backend() as origin, Backend(script=silent) as hangs:
        server = mirrored(origin, hangs)
        with server.connect() as c:
            for _ in range(600):
                assert c.get("/").status == 200
        wait_until(lambda: hangs.connections == 256, "the maximum number of copies")


@pytest.mark.parametrize("options, message", [
    ("mirror=127.0.0.1:1", "expected a server without a path, such as `http://127.0.0.1:3000`"),
    ("mirror=http://127.0.0.1:1/x", "expected a server without a path"),
    ("share=10%", "`share` needs a mirror: expected `mirror=http://SERVER` as well"),
    ("mirror=http://127.0.0.1:1 share=0", "expected a percentage above 0, at most 100"),
    ("mirror=http://127.0.0.1:1 share=100.5%", "expected a percentage above 0, at most 100"),
    ("mirror=http://127.0.0.1:1 share=some", "expected a percentage above 0, at most 100"),
])
def test_mirror_invalid_options_are_rejected(run, tmp_path, options, message):
    config = tmp_path / "monkey.conf"
    config.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load proxy\n[HOST]\n    DocumentRoot {tmp_path}\n"
                      f"[ROUTES]\n    /*  proxy http://127.0.0.1:1 {options}\n")
    tested = run("-t", "-c", config)
    assert tested.code == 3 and message in tested.err, tested.err
