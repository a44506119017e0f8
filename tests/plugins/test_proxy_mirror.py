# SPDX-License-Identifier: Apache-2.0
"""A share of the requests is copied to a second server, which no client ever notices."""
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


def heard(shadow, n):
    wait_until(lambda: len(shadow.asked) >= n, f"{n} copies")


@pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
def test_the_mirror_gets_what_the_server_gets(mirrored, pair):
    origin, shadow = pair
    server = mirrored(*pair)
    assert server.get("/a?b", "POST", body=b"content", fields=[("X-Own", "1")]).status == 200
    heard(shadow, 1)
    one, other = origin.asked[0], shadow.asked[0]
    assert (one.method, one.target, one.body) == (other.method, other.target, other.body) == ("POST", "/a?b", b"content")
    assert one.fields == other.fields


def test_copies_use_kept_connections(mirrored, pair):
    server = mirrored(*pair)
    with server.connect() as c:
        for n in range(1, 6):
            assert c.get("/").status == 200
            heard(pair[1], n)
    assert pair[1].connections == 1


def test_its_responses_are_dropped(mirrored):
    with Backend() as origin, Backend(lambda asked: response(b"x" * 3_000_000, "500 Oops")) as shadow:
        server = mirrored(origin, shadow)
        for n in range(3):
            assert server.get("/").status == 200
            heard(shadow, n + 1)
        assert "Oops" not in server.err.text


def test_a_mirror_that_is_down_or_hangs_holds_nothing_up(mirrored):
    gone = Backend()
    gone.stop()
    with Backend() as origin, Backend(script=silent) as hangs:
        for shadow in (gone, hangs):
            server = mirrored(origin, shadow)
            assert [server.get("/").status for _ in range(20)] == [200] * 20
            server.tell(signal.SIGTERM)
            assert server.process.wait(20) == 0, "copies that are under way do not hold its end up"


def test_a_client_that_leaves_takes_no_copy_with_it(mirrored, pair):
    with Backend(script=silent) as waits:
        server = mirrored(waits, pair[1])
        with server.connect() as c:
            c.ask("/left")
            heard(pair[1], 1)
        assert pair[1].asked[0].target == "/left"


def test_a_share_is_drawn(mirrored, pair):
    server = mirrored(*pair, "share=25%")
    with server.connect() as c:
        for _ in range(400):
            assert c.get("/").status == 200
    wait_until(lambda: len(pair[1].asked) > 40, "a share of the copies")
    assert len(pair[1].asked) < 200  # 100 are expected: ten deviations


def test_large_content_is_not_copied(mirrored, pair):
    server = mirrored(*pair)
    assert server.get("/large", "POST", body=b"x" * 100_000).status == 200
    assert server.get("/next").status == 200
    heard(pair[1], 1)
    assert [asked.target for asked in pair[1].asked] == ["/next"]


def test_copies_under_way_are_bounded(mirrored):
    """And memory with them: a mirror that is slower than the traffic gets less of it."""
    with Backend() as origin, Backend(script=silent) as hangs:
        server = mirrored(origin, hangs)
        with server.connect() as c:
            for _ in range(600):
                assert c.get("/").status == 200
        wait_until(lambda: hangs.connections == 256, "as many copies as may be")


@pytest.mark.parametrize("options, says", [
    ("mirror=127.0.0.1:1", "expected a server without a path, such as `http://127.0.0.1:3000`"),
    ("mirror=http://127.0.0.1:1/x", "expected a server without a path"),
    ("share=10%", "share is of a mirror: expected `mirror=http://SERVER`, too"),
    ("mirror=http://127.0.0.1:1 share=0", "expected a percentage above 0, at most 100"),
    ("mirror=http://127.0.0.1:1 share=100.5%", "expected a percentage above 0, at most 100"),
    ("mirror=http://127.0.0.1:1 share=some", "expected a percentage above 0, at most 100"),
])
def test_mistakes_are_named(run, tmp_path, options, says):
    config = tmp_path / "monkey.conf"
    config.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load proxy\n[HOST]\n    DocumentRoot {tmp_path}\n"
                      f"[ROUTES]\n    /*  proxy http://127.0.0.1:1 {options}\n")
    tested = run("-t", "-c", config)
    assert tested.code == 3 and says in tested.err, tested.err
