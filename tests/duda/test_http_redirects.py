# SPDX-License-Identifier: Apache-2.0
"""The http package: redirects."""
import errno
import threading

import pytest

import services
from backend import Backend, response
from http_call_service import start

pytestmark = pytest.mark.skipif(not services.has("http"), reason="this build has no Duda")


def redirect(location, status="302 Found", body=b"moved", fields=()):
    return response(body, status, [("Location", location), *fields])


class Redirects(Backend):
    """Responds to a path in `routes` with that response, and to any other path with `end`."""

    def __init__(self, routes=None):
        self.routes = routes or {}
        super().__init__(lambda request: self.routes.get(request.target, response("end")))


def client(monkey, site, backend, keys=""):
    return start(monkey, site, f"    Server {backend.address}\n{keys}")


@pytest.mark.parametrize("how", ["fetch", "open"])
def test_redirects_are_followed_only_up_to_max_redirects(monkey, site, how):
    with Redirects({"/0": redirect("/1"), "/1": redirect("2?x=y#part"), "/2?x=y": redirect("./a/../3")}) as backend:
        caller = client(monkey, site, backend)
        origin = f"http://{backend.address}"
        for redirects in (0, 1, 2):
            backend.requests.clear()
            r = caller.call("/0", how=how, redirects=redirects)
            assert [request.target for request in backend.requests] == ["/0", "/1", "/2?x=y"][:redirects + 1]
            if redirects == 0:
                assert (r.errno, r.status, r.url, r.body) == (0, 302, f"{origin}/0", b"moved")
            else:
                assert r.errno == errno.ELOOP and "the limit max_redirects is exceeded" in r.error
        backend.requests.clear()
        r = caller.call("/0", how=how, redirects=3)
        assert (r.errno, r.status, r.url, r.body) == (0, 200, f"{origin}/3", b"end")
        assert len({request.connection for request in backend.requests}) == 1, "the connection is reused after each redirect"


def test_redirect_to_itself_ends_at_the_limit(monkey, site):
    with Redirects({"/": redirect("/")}) as backend:
        r = client(monkey, site, backend).call("/", redirects=20)
        assert r.errno == errno.ELOOP and "the redirect to /" in r.error
        assert len(backend.requests) == 21


@pytest.mark.parametrize("status, method, then, keeps_body", [
    (301, "POST", "GET", False), (302, "POST", "GET", False), (303, "POST", "GET", False), (307, "POST", "POST", True),
    (308, "POST", "POST", True), (301, "PUT", "PUT", True), (302, "PUT", "PUT", True), (303, "PUT", "GET", False),
    (303, "HEAD", "HEAD", False), (307, "DELETE", "DELETE", True)])
def test_redirect_status_decides_method_and_body(monkey, site, status, method, then, keeps_body):
    with Redirects({"/from": redirect("/to", f"{status} Moved", b"" if method == "HEAD" else b"moved")}) as backend:
        body = b"" if method == "HEAD" else b"content"
        assert client(monkey, site, backend).call("/from", body=body, method=method, redirects=1).status == 200
        last = backend.requests[-1]
        assert (last.target, last.method, last.body) == ("/to", then, b"content" if keeps_body else b"")
        assert (last.get("Content-Type") is not None) == (keeps_body and bool(body))


def test_redirect_without_a_body_drops_its_headers(monkey, site):
    with Redirects({"/from": redirect("/to", "303 See Other")}) as backend:
        r = start(monkey, site, f"    Server {backend.address}\n").server.get("/call?target=/from&redirects=1&headers=1", method="POST", body=b"x")
        assert r.status == 200
        first, last = backend.requests
        assert first.get("Content-Language") == "en" and last.get("Content-Language") is None
        assert last.get("Authorization") == "Bearer secret" and last.get("Cookie") == "a=b", "the origin is the same"
        assert last.get("X-Kept") == "kept"


@pytest.mark.parametrize("location, reason", [
    ("ftp://host/", "it does not begin with http:// or https://"), ("http://", "its host is missing or invalid"),
    ("http://user:password@HOST/", "it contains a user name"), ("http://HOST\\@other/", "it contains a user name"),
    ("http://127.1/", "its address is invalid"), ("//a:99999/", "its port is invalid"), ("javascript:alert(1)", "it does not begin with")])
def test_invalid_locations_are_errors(monkey, site, location, reason):
    with Redirects() as backend:
        backend.routes["/from"] = redirect(location.replace("HOST", backend.address))
        r = client(monkey, site, backend).call("/from", redirects=5)
        assert r.errno in (errno.EPROTO, errno.EPERM) and reason in r.error, r.error
        assert len(backend.requests) == 1


def test_two_locations_are_an_error_and_none_is_a_response(monkey, site):
    with Redirects({"/two": redirect("/a", fields=[("Location", "/b")]), "/none": response("nowhere", "302 Found"),
                    "/300": redirect("/a", "300 Multiple Choices"), "/304": b"HTTP/1.1 304 Not Modified\r\nLocation: /a\r\n\r\n"}) as backend:
        caller = client(monkey, site, backend)
        r = caller.call("/two", redirects=5)
        assert r.errno == errno.EPROTO and "several Location headers" in r.error
        assert caller.call("/none", redirects=5).body == b"nowhere"
        assert caller.call("/300", redirects=5).status == 300
        assert caller.call("/304", redirects=5).status == 304
        assert len(backend.requests) == 4


def test_other_servers_are_not_reached_through_a_redirect(monkey, site):
    with Redirects() as backend, Redirects() as other:
        backend.routes["/from"] = redirect(f"http://{other.address}/secret")
        r = client(monkey, site, backend).call("/from", redirects=5, headers="1")
        assert r.errno == errno.EPERM and "it belongs neither to Server nor to AllowHosts" in r.error
        assert not other.requests
        assert client(monkey, site, backend).call("/from", redirects=5).url == f"http://{backend.address}/from"


def test_streamed_request_bodies_exclude_redirects(monkey, site):
    with Redirects({"/from": redirect("/to")}) as backend:
        caller = client(monkey, site, backend)
        assert caller.call("/from", how="begin").status == 302
        assert caller.call("/from", how="begin", redirects=1).errno == errno.EINVAL


def test_long_redirect_body_closes_only_the_connection(monkey, site):
    with Redirects({"/from": redirect("/to", body=b"x" * 5_000_000)}) as backend:
        assert client(monkey, site, backend).call("/from", redirects=1).body == b"end"
        assert [request.connection for request in backend.requests] == [1, 2]


def test_client_that_leaves_during_a_redirect_ends_the_exchange(monkey, site):
    reached, released = threading.Event(), threading.Event()

    def reply(request):
        if request.target == "/from":
            return redirect("/slow")
        reached.set()
        released.wait(20)
        return response("late")

    with Backend(reply) as backend:
        caller = client(monkey, site, backend)
        connection = caller.server.connect()
        connection.send(b"GET /call?target=/from&redirects=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert reached.wait(20)
        connection.close()
        released.set()
        assert caller.call("/other").errno == 0
