# SPDX-License-Identifier: Apache-2.0
"""What the interface offers to gateways, over every protocol (tests/plugins/api/gateway.c)."""
import pytest

from client import Closed
from monkey import PROGRAM, PROTOCOLS, ROOT
from proc import wait_until

BUILT = ROOT / "build" / "dev" / "tests" / "plugins"

pytestmark = [
    pytest.mark.skipif(not BUILT.exists() or PROGRAM.parent != BUILT.parents[1],
                       reason="the plugins of the tests are built with the program in build/dev"),
    pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)]

SECTIONS = """
[ROUTES]
    /fails   fails
    /closes  closes
    /*       static
[ERROR_PAGES]
    504     slow.html
"""


@pytest.fixture
def start(monkey, site, tmp_path):
    site.add("index.html", "hello")
    site.add("slow.html", "too slow")

    def server(keys="", sections=SECTIONS):
        return monkey(plugins=[BUILT / "monkey-gateway.so"], sections=sections,
                      server=f"AccessLog {tmp_path}/access.log\nAccessLogFormat json\n{keys}")

    return server


@pytest.fixture
def server(start):
    return start()


def records(tmp_path, count):
    path = tmp_path / "access.log"
    wait_until(lambda: path.exists() and path.read_text().count("\n") >= count, "the records are written")
    return path.read_text().splitlines()


# ---- Sources that fail ----


@pytest.mark.parametrize("how", ["", "&at=100", "&early=1", "&early=1&at=5000"])
def test_a_source_that_fails_says_with_which_status(server, tmp_path, how):
    with server.connect() as c:
        for status, page in ((502, "502 Bad Gateway"), (504, "too slow"), (413, "413 Content Too Large"), (400, "400 Bad Request")):
            reply = c.get(f"/fails?status={status}{how}")
            assert reply.status == status and page in reply.text
            assert reply["Content-Type"].startswith("text/html") and "Cache-Control" not in reply
            assert reply.all("X-Seen") == ["once"], "it is a response of its own, which hooks see as a whole"
        assert c.is_open(), "it is as good as any other error"
    assert [f'"status":{status}' in line for status, line in zip((502, 504, 413, 400), records(tmp_path, 4))] == [True] * 4


def test_without_a_status_it_is_a_500(server):
    for target in ("/fails", "/fails?status=200", "/fails?status=600"):
        reply = server.get(target)
        assert reply.status == 500 and "500 Internal Server Error" in reply.text


def test_content_of_the_request_does_not_matter(server):
    with server.connect() as c:
        for target in ("/fails?status=502&reads=1", "/fails?status=502"):
            reply = c.get(target, "POST", body=b"x" * 1000)
            assert reply.status == 502 and "502 Bad Gateway" in reply.text
            if reply.closes:
                break
        assert server.get("/").text == "hello"


def test_what_was_sent_cannot_be_replaced(server, tmp_path):
    with server.connect() as c, pytest.raises(Closed):
        c.get("/fails?at=500000&status=502")
    (record,) = records(tmp_path, 1)
    assert '"status":200' in record
    assert server.get("/").text == "hello"


# ---- What became of a response ----

HUGE = 50_000_000


@pytest.mark.parametrize("target, method, text", [
    ("size=1000&known=1", "GET", "sent, 0 left"),
    ("size=1000", "GET", "sent, 0 left"),
    ("size=300000&known=1", "GET", "sent, 0 left"),
    ("size=300000", "GET", "sent, 0 left"),
    ("size=0", "GET", "sent, 0 left"),
    ("size=1000&known=1", "HEAD", "sent, 1000 left"),
    ("size=1000", "HEAD", "sent, 1000 left"),
    ("size=1000&status=304", "GET", "sent, 1000 left"),
    ("size=1000&status=204", "GET", "sent, 1000 left"),
    ("size=1000&cut=100", "GET", "sent, 900 left"),
    ("size=1000&replaced=1", "GET", "not sent, 1000 left"),
    ("size=1000&lies=1", "GET", "not sent, 0 left"),
    ("size=300000&lies=1", "GET", "not sent, 0 left"),
    ("size=300000&lies=1&known=1", "GET", "not sent, 0 left")])
def test_a_source_learns_whether_the_response_was_sent(server, target, method, text):
    cut_off = "lies" in target and "size=1000" not in target
    with server.connect() as c:
        if cut_off:
            with pytest.raises(Closed):
                c.get(f"/closes?name=a&{target}", method)
        else:
            c.get(f"/closes?name=a&{target}", method)
            assert "lies" in target or c.is_open()
    server.err.wait_for(rf"gateway: closed a: {text}\n")
    final = "not sent" if "lies" in target else "sent"
    server.err.wait_for(rf"gateway: ended a: {final}, ")  # with the content that took its place


def test_a_client_that_leaves_got_nothing_whole(server):
    with server.connect() as c:
        c.ask(f"/closes?size={HUGE}&known=1&name=a").read_head()
    server.err.wait_for(r"gateway: closed a: not sent, [1-9]\d* left")


def test_a_stream_that_is_reset_got_nothing_whole(server):
    if not server.is_h2:
        pytest.skip("only HTTP/2 can")
    with server.connect() as c:
        c.ask(f"/closes?size={HUGE}&name=a").read_head()
        c.cancel()
        server.err.wait_for(r"gateway: closed a: not sent, [1-9]\d* left")
        assert c.is_open()
