# SPDX-License-Identifier: Apache-2.0
"""The plugin interface for gateways, over every protocol (tests/plugins/api/gateway.c)."""
from urllib.parse import quote

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
    /hints   hints
    /origin  origin
    /raw/*   raw
    */events gateway-events
    /look    look
    *.sum    raw
    /*       static
[ERROR_PAGES]
    504     slow.html
"""


@pytest.fixture
def start(monkey, site, tmp_path):
    site.add("index.html", "hello")
    site.add("slow.html", "too slow")
    site.add("folder/in dex.sum")

    def server(keys="", sections=SECTIONS):
        return monkey(plugins=[BUILT / "monkey-gateway.so"], sections=sections, host='Index index.html "in dex.sum"',
                      server=f"AccessLog {tmp_path}/access.log\nAccessLogFormat json\n{keys}")

    return server


@pytest.fixture
def server(start):
    return start()


def records(tmp_path, count):
    path = tmp_path / "access.log"
    wait_until(lambda: path.exists() and path.read_text().count("\n") >= count, "the log records are written")
    return path.read_text().splitlines()


# ---- Body sources that fail ----


@pytest.mark.parametrize("how", ["", "&at=100", "&early=1", "&early=1&at=5000"])
def test_source_failure_determines_status(server, tmp_path, how):
    with server.connect() as c:
        for status, page in ((502, "502 Bad Gateway"), (504, "too slow"), (413, "413 Content Too Large"), (400, "400 Bad Request")):
            reply = c.get(f"/fails?status={status}{how}")
            assert reply.status == status and page in reply.text
            assert reply["Content-Type"].startswith("text/html") and "Cache-Control" not in reply
            assert reply.all("X-Seen") == ["once"], "an independent response, which hooks see complete"
        assert c.is_open(), "equal to any other error"
    assert [f'"status":{status}' in line for status, line in zip((502, 504, 413, 400), records(tmp_path, 4))] == [True] * 4


def test_source_failure_without_status_gets_500(server):
    for target in ("/fails", "/fails?status=200", "/fails?status=600"):
        reply = server.get(target)
        assert reply.status == 500 and "500 Internal Server Error" in reply.text


def test_source_failure_is_independent_of_request_body(server):
    with server.connect() as c:
        for target in ("/fails?status=502&reads=1", "/fails?status=502"):
            reply = c.get(target, "POST", body=b"x" * 1000)
            assert reply.status == 502 and "502 Bad Gateway" in reply.text
            if reply.closes:
                break
        assert server.get("/").text == "hello"


def test_source_failure_after_head_truncates_response(server, tmp_path):
    with server.connect() as c, pytest.raises(Closed):
        c.get("/fails?at=500000&status=502")
    (record,) = records(tmp_path, 1)
    assert '"status":200' in record
    assert server.get("/").text == "hello"


# ---- Outcome of a response ----

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
def test_source_learns_whether_response_was_sent(server, target, method, text):
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
    server.err.wait_for(rf"gateway: ended a: {final}, ")  # logged together with the replacement body


def test_source_learns_of_client_disconnect(server):
    with server.connect() as c:
        c.ask(f"/closes?size={HUGE}&known=1&name=a").read_head()
    server.err.wait_for(r"gateway: closed a: not sent, [1-9]\d* left")


def test_source_learns_of_stream_reset(server):
    if not server.is_h2:
        pytest.skip("only HTTP/2 can")
    with server.connect() as c:
        c.ask(f"/closes?size={HUGE}&name=a").read_head()
        c.cancel()
        server.err.wait_for(r"gateway: closed a: not sent, [1-9]\d* left")
        assert c.is_open()


# ---- Interim responses ----


def links(reply):
    return [(interim.status, interim.all("Link"), interim.all("X-Hint")) for interim in reply.interim]


def test_early_hints_are_sent_at_once(server):
    with server.connect() as c:
        c.ask("/hints?often=3&wait=60000")
        for i in range(3):
            interim = c.read_interim()
            assert (interim.status, interim["Link"]) == (103, f"</{i}.css>; rel=preload")
            assert [name.lower() for name, _ in interim.fields if not name.startswith(":")] == ["link", "x-hint"]


@pytest.mark.parametrize("status", [102, 103, 104, 150, 199])
def test_early_hints_do_not_change_the_response(server, status):
    with server.connect() as c:
        for method in ("GET", "HEAD"):
            reply = c.get(f"/hints?status={status}&often=2", method)
            assert links(reply) == [(status, [f"</{i}.css>; rel=preload"], ["yes"]) for i in range(2)]
            assert (reply.status, reply.all("Link"), reply["X-Error"]) == (200, ["</final.css>"], "0")
            assert reply.all("X-Hint") == []
        assert c.is_open()


@pytest.mark.parametrize("status", [100, 101, 200, 99])
def test_interim_response_with_invalid_status_is_refused(server, status):
    reply = server.get(f"/hints?status={status}")
    assert (reply.status, reply.interim, reply["X-Error"]) == (200, [], "-22")


def test_interim_response_is_not_sent_to_http_1_0(server):
    if server.is_h2:
        pytest.skip("HTTP/1.0 only")
    reply = server.get("/hints", version="1.0")
    assert (reply.status, reply.interim, reply["X-Error"]) == (200, [], "-95")


@pytest.mark.parametrize("reads, order", [("before", [100, 103]), ("after", [103, 100])])
def test_interim_100_continue_is_sent_in_order(server, reads, order):
    with server.connect() as c:
        c.ask(f"/hints?reads={reads}", "POST", [("Expect", "100-continue")], streamed=True)
        assert [c.read_interim().status for _ in order] == order
        c.more(b"hello")
        c.done()
        assert c.read("POST").text == "final\n"
        assert c.is_open()


# ---- Headers from another server ----

OLD = "Sun, 06 Nov 1994 08:49:37 GMT"
TE = [("TE", "trailers")]


def sent_by(**words):
    return "/origin?" + "&".join(f"{name}={quote(each)}" for name, value in words.items()
                                 for each in ([value] if isinstance(value, str) else value))


def test_origin_date_and_server_headers_are_passed(server):
    with server.connect() as c:
        for method in ("GET", "HEAD"):
            reply = c.get(sent_by(field=[f"Date:{OLD}", "Server:Origin/1"]), method)
            assert (reply.all("Date"), reply.all("Server")) == ([OLD], ["Origin/1"])
            reply = c.get(sent_by(field=[f"date:{OLD}"]), method)
            assert reply.all("Date") == [OLD] and reply["Server"].startswith("Monkey")
            reply = c.get(sent_by(field=["server:Origin/1", "Server:Origin/2"]), method)
            assert reply.all("Server") == ["Origin/2"] and len(reply.all("Date")) == 1 and reply["Date"] != OLD
            reply = c.get("/", method)
            assert reply["Server"].startswith("Monkey") and reply["Date"] != OLD


def test_origin_headers_do_not_affect_error_pages(server):
    for target in (sent_by(field=[f"Date:{OLD}", "Server:Origin/1", "Trailer:X-Sum"], refuse="502"),
                   "/fails?status=502"):
        reply = server.get(target, fields=TE)
        assert reply.status == 502 and reply["Server"].startswith("Monkey") and reply["Date"] != OLD
        assert "Trailer" not in reply and not reply.trailers


def test_trailers_may_be_added_late(server):
    with server.connect() as c:
        reply = c.get(sent_by(field="Trailer:X-Sum, ETag", late=["X-Sum:1", "ETag:\"2\""]), fields=TE)
        assert [(name.lower(), value) for name, value in reply.trailers] == [("x-sum", "1"), ("etag", '"2"')]
        assert (reply.all("Trailer"), reply.text) == (["X-Sum, ETag"], "hello")
        assert c.is_open()


def test_trailers_known_early_are_announced(server):
    with server.connect() as c:
        reply = c.get(sent_by(early=["X-Sum:1", "X-More:2"], late="X-Late:3"), fields=TE)
        assert [name.lower() for name, _ in reply.trailers] == ["x-sum", "x-more", "x-late"]
        assert reply.all("Trailer") == ["X-Sum, X-More"]
        reply = c.get(sent_by(early="X-Sum:1", field="Trailer:X-Other"), fields=TE)
        assert reply.all("Trailer") == ["X-Other"], "the more specific announcement"


@pytest.mark.parametrize("how", [{}, {"fields": [("TE", "gzip")]}, {"fields": TE, "version": "1.0"}], ids=str)
def test_trailers_are_omitted_for_clients_without_te(server, how):
    if server.is_h2 and how:
        pytest.skip("HTTP/2 allows neither")
    reply = server.get(sent_by(field="Trailer:X-Sum", early="X-Early:1", late="X-Sum:1"), **how)
    assert reply.text == "hello" and not reply.trailers and "Trailer" not in reply


def test_trailers_with_content_length_are_only_for_http_2(server):
    """HTTP/1.1 can send trailers only after a chunked body."""
    reply = server.get(sent_by(field="Trailer:X-Sum", late="X-Sum:1", known="1"), fields=TE)
    assert reply["Content-Length"] == "5" and reply.text == "hello"
    assert len(reply.trailers) == len(reply.all("Trailer")) == (1 if server.is_h2 else 0)


# ---- Forwarded requests ----


@pytest.mark.parametrize("target, raw", [
    ("/raw/", "/raw/"),
    ("/raw/a%20b/c//d?x=%20&y?z", "/raw/a%20b/c//d?x=%20&y?z"),
    ("/raw/a%20b/%2e%2e/c//d?x=%20&y?z", "/raw/c/d?x=%20&y?z"),
    ("/raw/../raw/x", "/raw/x"),
    ("/raw/?", "/raw/?"),
    ("/old?a=1", "/raw/n%65w%20one?b=%32"),
    ("/folder/?c=%33", "/folder/in%20dex.sum?c=%33")])
def test_raw_target_is_preserved_for_forwarding(server, target, raw):
    reply = server.get(target)
    assert reply.status == 200 and reply.text.splitlines() == [raw, target]


def test_raw_target_omits_authority(server):
    if server.is_h2:
        pytest.skip("HTTP/2 has none")
    assert server.get("http://localhost/raw/%41?b").text.splitlines()[0] == "/raw/%41?b"


# ---- Event streams ----

EVENTS = "data: a\n\ndata: a\n\n"


def test_event_stream_may_be_silent_within_its_limit(start):
    server = start("HandlerTimeout 300ms")
    assert server.get("/events?silence=1200&limit=0").text == EVENTS
    assert server.get("/events?silence=600&limit=5000").text == EVENTS
    with server.connect() as c, pytest.raises((Closed, ConnectionResetError)):
        c.get("/events?silence=60000&name=a")
    server.err.wait_for("gateway: events a: cut off")


def test_event_stream_limit_may_be_below_handler_timeout(start):
    server = start("HandlerTimeout 60s")
    with server.connect() as c, pytest.raises((Closed, ConnectionResetError)):
        c.get("/events?silence=60000&limit=100")


def test_event_stream_silence_may_be_configured(start):
    server = start("HandlerTimeout 300ms", SECTIONS + "[LOCATION]\n    Path /long/*\n    HandlerTimeout unlimited\n")
    assert server.get("/long/events?silence=1200").text == EVENTS
    with server.connect() as c, pytest.raises((Closed, ConnectionResetError)):
        c.get("/events?silence=60000")


@pytest.mark.parametrize("path", ["/events?limit=0&", "/long/events?"])
@pytest.mark.parametrize("leave", ["close", "cancel", "half"])
def test_event_stream_ends_with_its_client(start, path, leave):
    server = start("HandlerTimeout 300ms", SECTIONS + "[LOCATION]\n    Path /long/*\n    HandlerTimeout unlimited\n")
    if leave == "cancel" and not server.is_h2 or leave == "half" and server.protocol != "h1":
        pytest.skip("not over this protocol")
    with server.connect() as c:
        c.ask(f"{path}silence=3600000&name=b").read_head()
        assert c.read_exactly(9 if server.is_h2 else 16)
        {"close": c.close, "cancel": getattr(c, "cancel", None), "half": getattr(c, "shut", None)}[leave]()
        server.err.wait_for("gateway: events b: cut off", seconds=5)
    assert server.get("/").text == "hello"


# ---- Files ----


def test_stat_of_path_returns_type_size_and_time(server, site):
    site.add("a.txt", "hello", mtime=1700000000)
    (site / "link").symlink_to("a.txt")
    for path, text in (("/a.txt", "file 5 1700000000"), ("/none", "-2"), ("/a.txt/", "-20"), ("/../a.txt", "-22"), ("/link", "-40")):
        assert server.get(f"/look?{path}").text == text
    for path in ("/", "/folder", "/folder/"):
        assert server.get(f"/look?{path}").text.startswith("folder 0 ")
    site.add("none", "there")
    assert server.get("/look?/none").text.startswith("file 5 ")
    (site / "none").unlink()
    wait_until(lambda: server.get("/look?/none").text == "-2", "a fresh lookup")
