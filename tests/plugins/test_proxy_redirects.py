# SPDX-License-Identifier: Apache-2.0
"""The proxy rewrites a backend's redirects and cookies for its clients."""
import pytest

from backend import Backend, response
from monkey import PROTOCOLS

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)


@pytest.fixture
def proxy(monkey, site):
    """`proxy("/* proxy http://...")` starts the server with these routes."""
    site.add("index.html", "home")

    def start(*routes, upstream="", **how):
        lines = "".join(f"    {route}\n" for route in routes)
        return monkey(plugins=["proxy"], sections=f"{upstream}\n[ROUTES]\n{lines}    /*  static\n", **how)

    return start


@pytest.mark.parametrize("location, expected", [
    ("http://{}/app/x", "/web/x"), ("/app/x?y", "/web/x?y"), ("http://elsewhere.example/app/x",) * 2,
    ("http://{}0/app/x",) * 2, ("x", "x"), ("//other/app/", "//other/app/")])
def test_proxy_redirect_to_backend_is_rewritten(proxy, location, expected):
    with Backend(lambda request: response("", "302 Found", [("Location", location.format(request.get("Host")))])) as backend:
        server = proxy(f"/web/* proxy http://{backend.address}/app/ host=upstream")
        assert server.get("/web/")["Location"] == expected.format(backend.address)


@every_protocol
@pytest.mark.parametrize("target, options, location, expected", [
    ("/app/", "", "http://{host}/app/x", "http://{host}/web/x"), ("/app/", "", "https://{host}/app/x?y", "https://{host}/web/x?y"),
    ("/app/", "", "https://{host}:8443/app/x", None), ("/app/", "", "http://{host}0/app/x", None),
    ("", "", "https://{host}/web/x", None), ("", "", "http://{host}/web/x", None),
    ("/app/", "host=b.example", "{scheme}://b.example/app/x", "/web/x"), ("", "host=b.example", "{scheme}://b.example/web/x", "/web/x"),
    ("/app/", "host=b.example", "{other}://b.example/app/x", None), ("/app/", "host=b.example", "{scheme}://{host}/app/x", None)])
def test_proxy_redirect_to_requested_host_is_rewritten(proxy, target, options, location, expected):
    """A change of the scheme is preserved: otherwise a redirect to HTTPS would become a redirect loop."""
    with Backend(lambda request: response("", "302 Found", [("Location", locations[0])])) as backend:
        server = proxy(f"/web/* proxy http://{backend.address}{target} {options}")
        scheme, other = ("https", "http") if server.protocol.endswith("-tls") else ("http", "https")
        names = {"host": "a.example:1", "scheme": scheme, "other": other}
        locations = [location.format(**names)]
        assert server.get("/web/", host=names["host"])["Location"] == (expected or location).format(**names)


def test_proxy_redirects_and_cookies_options_control_rewriting(proxy):
    fields = [("Location", "/app/x"), ("Set-Cookie", "a=1; Path=/app/y; Domain=b.example; Secure")]
    with Backend(lambda request: response("", "302 Found", fields)) as backend:
        server = proxy(f"/1/* proxy http://{backend.address}/app/ redirects=off",
                       f"/2/* proxy http://{backend.address}/app/ cookies=on")
        assert server.get("/1/")["Location"] == "/app/x" and server.get("/1/")["Set-Cookie"] == fields[1][1]
        assert server.get("/2/")["Location"] == "/2/x" and server.get("/2/")["Set-Cookie"] == "a=1; Path=/2/y; Secure"


AUTHORITIES = [  # target, Location of the backend, Location for the client
    ("http://b.example/app/", "http://b.example/app", "/web"), ("http://b.example/app/", "http://b.example/app?x", "/web?x"),
    ("http://b.example/app/", "http://b.example/app#f", "/web#f"), ("http://b.example/app/", "HTTP://B.Example/app/x", "/web/x"),
    ("http://b.example/app/", "http://b.example:80/app/x", "/web/x"), ("http://b.example/app/", "http://[::1]/app/x", None),
    ("http://b.example/app/", "http://b.example:/app/x", "/web/x"), ("http://b.example/app/", "//b.example/app/x", "/web/x"),
    ("http://b.example/app/", "https://b.example/app/x", "/web/x"), ("http://b.example/app/", "/app", "/web"),
    ("http://b.example/app/", "/app?x", "/web?x"), ("http://b.example/app/", "/app#f", "/web#f"),
    ("http://b.example/app/", "/app;j=1?x", "/web;j=1?x"),
    ("http://b.example/app/", "http://b.example", "/"), ("http://b.example/app/", "http://b.example#f", "/#f"),
    ("http://b.example/app/", "http://b.example?x", "/?x"),
    ("http://b.example/", "http://b.example#f", "/web/#f"), ("http://b.example/app", "/app/x", "/web/x"),
    ("http://b.example/app/", "/apple", "/apple"), ("http://b.example/app/", "http://b.example:81/app/x", None),
    ("http://b.example/app/", "https://b.example:80/app/x", "/web/x"), ("http://b.example/app/", "https://b.example:443/app/x", None),
    ("http://b.example/app/", "http://b.example.evil/app/x", None),
    ("http://b.example/app/", "http://u@b.example/app/x", None), ("http://b.example/app/", "http://b.example:80x/app", None),
    ("http://b.example/app/", "ftp://b.example/app/x", None), ("http://b.example/app/", "//other/app", None),
    ("http://b.example/app/", "app/x", None), ("http://b.example/app/", "?x", None),
    # No part of a path may become a host name.
    ("http://b.example", "http://b.example//evil.example/", "/.//evil.example/"),
    ("http://b.example", "http://b.example/\\evil.example/", "/./\\evil.example/"),
    ("http://b.example/app/", "/app///evil.example", "/web//evil.example"),
    ("http://b.example", "/\t/evil.example", "/%09/evil.example"), ("http://b.example", "/a b", "/a%20b")]


@pytest.mark.parametrize("target, value, expected", AUTHORITIES)
@pytest.mark.parametrize("name", ["Location", "Content-Location", "Refresh"])
def test_proxy_rewrites_every_form_of_backend_url(proxy, name, target, value, expected):
    """The backend's name is the name of an [UPSTREAM], because the port of the backend varies."""
    before = "5; url=" if name == "Refresh" else ""
    if name == "Refresh" and expected and "%" in expected:
        pytest.skip("a refresh is trimmed by browsers themselves")
    status = "302 Found" if name == "Location" else "200 OK"
    with Backend(lambda request: response("", status, [(name, before + value)])) as backend:
        server = proxy(f"/web/* proxy {target}", upstream=f"[UPSTREAM]\n    Name b.example\n    Server {backend.address}\n")
        assert server.get("/web/", host="a.example")[name] == before + (value if expected is None else expected)


@pytest.mark.parametrize("value, expected", [
    ("http://{}/app/x", "/web/x"), ("HTTP://{}/app", "/web"), ("https://{}/app#f", "/web#f"), ("http://127.0.0.1/app/x",) * 2,
    ("http://127.0.0.1:1/app/x",) * 2, ("http://{}0/app/x",) * 2, ("http://{}@evil.example/app/x",) * 2])
def test_proxy_rewrites_backend_url_with_port(proxy, value, expected):
    with Backend(lambda request: response("", "302 Found", [("Location", value.format(backend.address))])) as backend:
        server = proxy(f"/web/* proxy http://{backend.address}/app/")
        assert server.get("/web/", host="a.example")["Location"] == expected.format(backend.address)


@pytest.mark.parametrize("path, expected", [("/app", "/web"), ("/app/", "/web/"), ("/app/x", "/web/x"), ("/apple", "/apple"),
                                            ("/", "/"), ("app", "app")])
def test_proxy_cookie_path_is_rewritten(proxy, path, expected):
    """Java applications write their context path without the trailing slash."""
    with Backend(lambda request: response("", fields=[("Set-Cookie", f"J=1;path={path}")])) as backend:
        server = proxy(f"/web/* proxy http://{backend.address}/app/ cookies=on", f"/* proxy http://{backend.address}/app/ cookies=on")
        assert server.get("/web/")["Set-Cookie"] == (f"J=1; Path={expected}" if path[0] == "/" else f"J=1;path={path}")
        top = {"/app": "/", "/app/": "/", "/app/x": "/x"}.get(path, path)
        assert server.get("/")["Set-Cookie"] == (f"J=1; Path={top}" if path[0] == "/" else f"J=1;path={path}")


@pytest.mark.parametrize("value, expected", [
    ("0;URL='/app/x'", "0; url=/web/x"), ('0; url = "/app/x" more', "0; url=/web/x"), ("1.5, url=http://{}/app/x", "1.5; url=/web/x"),
    ("0 url=/app/x", "0; url=/web/x"), ("0;/app/x", "0; url=/web/x"), ("0; url='/app/x", "0; url=/web/x"), ("5", "5"), ("5;", "5;"),
    ("x; url=/app/x",) * 2, ("0; url=//other/app/",) * 2, ("0;url='x'",) * 2, ("0;URL='/elsewhere'",) * 2])
def test_proxy_refresh_header_is_rewritten(proxy, value, expected):
    with Backend(lambda request: response("", fields=[("Refresh", value.format(backend.address))])) as backend:
        assert proxy(f"/web/* proxy http://{backend.address}/app/").get("/web/")["Refresh"] == expected


@pytest.mark.parametrize("value, expected", [
    ("</app/a.css>; rel=preload; as=style", "</web/a.css>; rel=preload; as=style"),
    ("<http://{}/app/p?x>; rel=next,</app/y>; rel=prev", "</web/p?x>; rel=next,</web/y>; rel=prev"),
    ('</app/x>; title="<a> \\"</app/y>"; rel=a, </app>', '</web/x>; title="<a> \\"</app/y>"; rel=a, </web>'),
    ("</elsewhere>, <x>, <//other/app/>, <mailto:a@b>",) * 2, ("</app/x",) * 2, ("",) * 2, ("<>", "<>")])
def test_proxy_link_header_is_rewritten(proxy, value, expected):
    with Backend(lambda request: response("", fields=[("Link", value.format(backend.address))])) as backend:
        server = proxy(f"/web/* proxy http://{backend.address}/app/", f"/1/* proxy http://{backend.address}/app/ redirects=off")
        assert server.get("/web/")["Link"] == expected
        assert server.get("/1/")["Link"] == value.format(backend.address)


@every_protocol
def test_proxy_early_hints_are_rewritten(proxy):
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </app/a.css>; rel=preload\r\n\r\n"
    with Backend(lambda request: [hints, response("late")]) as backend:
        got = proxy(f"/web/* proxy http://{backend.address}/app/").get("/web/")
        assert (got.text, [(each.status, each["Link"]) for each in got.interim]) == ("late", [(103, "</web/a.css>; rel=preload")])


@pytest.mark.parametrize("value, expected", [
    ("a=1; HttpOnly; Path=/app/x; Secure", "a=1; HttpOnly; Path=/web/x; Secure"), ("a=1;Domain=b.example;Path=/app/", "a=1; Path=/web/"),
    ("a=1; DOMAIN=b.example", "a=1"), ("a=1; Domain", "a=1"), ("a=1; domain = b.example ; path = /app/x ", "a=1; Path=/web/x"),
    ("a=1;\tPath\t=\t/app/", "a=1; Path=/web/"), ("a=Path=/app/x; Max-Age=1", "a=Path=/app/x; Max-Age=1"),
    ("a=1; Domain=b.example; Domain=c.example; Secure", "a=1; Secure"), ("a=1;;Secure;", "a=1;;Secure;"), ("Path=/app/", "Path=/app/"),
    ("a=1; XPath=/app/; Path=", "a=1; XPath=/app/; Path="), ("a=1" + "; Path=/app/" * 9, "a=1" + "; Path=/web/" * 9),
    ("a=1" + ";Path=/" * 20 + "; Domain=b.example", "a=1" + "; Path=/" * 20), ("", "")])
def test_proxy_cookie_attributes_are_parsed_like_browsers(proxy, value, expected):
    """RFC 6265, section 5.2: `;` ends each attribute, and whitespace around names and values is ignored."""
    with Backend(lambda request: response("", fields=[("Set-Cookie", value)])) as backend:
        server = proxy(f"/web/* proxy http://{backend.address}/app/ cookies=on")
        assert server.get("/web/")["Set-Cookie"] == expected
