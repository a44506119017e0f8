# SPDX-License-Identifier: Apache-2.0
"""Serves a configuration for each need in the first table of docs/guide/coming-from.md. Each configuration contains what the
column for Monkey shows; test_table_is_tested_completely checks that no row is left out."""
import contextlib
import gzip
import re

import pytest

import php_fpm
import users
from backend import Backend, response
from http2_backend import Http2Backend, answer
from manual import run, table_rows, write_configuration
from monkey import ROOT
from proc import wait_until

PAGE = ROOT / "docs/guide/coming-from.md"
ROWS = {row[0]: row[-1] for row in table_rows(PAGE, "You want to")}
SERVER, HOST = "[SERVER]\n    Listen 80\n", "[HOST]\n    DocumentRoot /srv/www\n"
NEEDS = {}  # what you want to do: (configuration, check)


def need(title, text):
    """`text` is a whole configuration, or the sections and keys after [HOST] and its DocumentRoot."""
    def add(check):
        NEEDS[title] = text if "[HOST]" in text else f"{SERVER}{HOST}{text}", check
        return check
    return add


def with_plugin(name, rest, host=HOST):
    return f"{SERVER}[PLUGINS]\n    Load {name}\n{host}{rest}"


def with_routes(*lines, plugin=None, before=""):
    routes = "[ROUTES]\n" + "".join(f"    {line}\n" for line in lines)
    return with_plugin(plugin, routes, before + HOST) if plugin else f"{SERVER}{before}{HOST}{routes}"


class World:
    """The files and backends of one configuration, and the server."""

    def __init__(self, folder, start, ends):
        self.folder, self.start, self.ends, self.replaced = folder, start, ends, {}
        for name in ("index.html", "a.txt", "404.html", "sorry.html", "docs/a.txt", "picture.png"):
            self.file(f"/srv/www/{name}", f"{name} " * 100)

    def file(self, path, text="text", mode=0o644):
        target = self.folder / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)

    def backend(self, address, kind=Backend, reply=lambda request: response(f"{request.method} {request.target}")):
        """Starts a backend in place of the one at the address, which the configuration names."""
        backend = self.ends.enter_context(kind(reply))
        self.replaced[address] = backend.address
        return backend

    def serve(self, text, prepare=lambda: None):
        for old, new in self.replaced.items():
            assert old in text
            text = text.replace(old, new)
        for i, old in enumerate(re.findall(r"^ +Listen +\S+", text, re.MULTILINE)):
            text = text.replace(old, f"    Listen 127.0.0.{i + 1}:0", 1)
        path = write_configuration(self.folder, text)
        prepare()
        self.server = self.start(args=["-c", path, "-w", "1"])
        return self.server

    def get(self, target="/a.txt", host="example.org", **how):
        return self.server.get(target, host=host, **how)

    def log(self, name):
        self.server.stop()
        return (self.folder / "var/log/monkey" / name).read_text()


@pytest.fixture
def world(tmp_path, monkey):
    with contextlib.ExitStack() as ends:
        yield World(tmp_path, monkey, ends)


def test_table_is_tested_completely():
    first = [row[0] for row in table_rows(PAGE, "You want to")]
    commands = first.index("check the configuration")
    assert commands >= 40 and NEEDS.keys() == set(first[:commands])


def is_shown(code, text):
    """True: the configuration contains the code of the table, in which words in capitals stand for other words, and files have
    no folder."""
    pattern = r"\s+".join(r"\S+" if re.fullmatch("XX|[A-Z]{3,}", word) else r"(?:/\S+/)?" + re.escape(word) for word in code.split())
    return re.search(pattern, text) is not None


@pytest.mark.parametrize("title", NEEDS)
def test_need_is_met(world, title):
    text, check = NEEDS[title]
    for code in re.findall(r"`([^`]+)`", re.sub(r"\([^)]*\)(?=$)", "", ROWS[title])):
        assert is_shown(code.replace("\\|", "|"), text), f"the table shows `{code}`"
    check(world, text)


# ---- Hosts and files ----

@need("listen on a port", f"[SERVER]\n    Listen 8080\n{HOST}")
@need("set the folder", SERVER + HOST)
def _(w, text):
    w.serve(text)
    assert w.get().text.startswith("a.txt")


@need("name a virtual host", f"{SERVER}{HOST}    ServerName example.org\n[HOST]\n    ServerName other.org\n    DocumentRoot /srv/other\n")
def _(w, text):
    w.file("/srv/other/a.txt", "other")
    w.serve(text)
    assert (w.get().text[:5], w.get(host="other.org").text) == ("a.txt", "other")


@need("give a host its own port", f"{SERVER}{HOST}[HOST]\n    ServerName admin.example.org\n    Listen 8081\n    DocumentRoot /srv/admin\n")
def _(w, text):
    w.file("/srv/admin/a.txt", "admin")
    w.serve(text)
    assert (w.get().text[:5], w.get(host="admin.example.org", listener=1).text) == ("a.txt", "admin")


@need("serve another folder under a path", "    Alias /docs/ /srv/docs\n")
def _(w, text):
    w.file("/srv/docs/a.txt", "aliased")
    w.serve(text)
    assert w.get("/docs/a.txt").text == "aliased"


@need("match all subdomains", f"{SERVER}{HOST}[HOST]\n    ServerName *.example.org\n    DocumentRoot /srv/sub\n")
@need("match names by a regular expression", f"{SERVER}{HOST}[HOST]\n    ServerName ~^www\\d+\\.example\\.org$\n    DocumentRoot /srv/sub\n")
def _(w, text):
    w.file("/srv/sub/a.txt", "sub")
    w.serve(text)
    assert (w.get(host="www1.example.org").text, w.get().text[:5]) == ("sub", "a.txt")


@need("choose the default host", f"{SERVER}{HOST}    ServerName example.org\n[HOST]\n    ServerName other.org\n    Default on\n    DocumentRoot /srv/other\n")
def _(w, text):
    w.file("/srv/other/a.txt", "other")
    w.serve(text)
    assert w.get(host="unknown.org").text == "other"
    w.server.stop()
    w.serve(text.replace("    Default on\n", ""))
    assert w.get(host="unknown.org").text.startswith("a.txt")


@need("set index files", "    Index index.html\n")
def _(w, text):
    w.serve(text)
    assert w.get("/").text.startswith("index.html")


@need("serve HTTPS", "[SERVER]\n    Listen 443 tls\n    Certificate /etc/monkey/c.pem /etc/monkey/k.pem\n" + HOST)
def _(w, text):
    w.folder.joinpath("etc/monkey").mkdir(parents=True)
    w.serve(text)
    assert w.server.encrypts == [True]


def check_loads(w, text):
    """Only loads the configuration: the tests of `acme` get the certificates."""
    w.file("/etc/monkey/hook", "#!/bin/sh\n", 0o755)
    path = write_configuration(w.folder, text)
    done = run("-t", "-c", path)
    assert done.returncode == 0, done.stderr


ACME = "[SERVER]\n    Listen 443 tls\n[PLUGINS]\n    Load acme\n[ACME]\n    AgreeToTerms on\n"
need("get certificates automatically", f"{ACME}{HOST}    ServerName example.org\n")(check_loads)
need("get a wildcard certificate", f"{ACME}    Challenge dns-01\n    DNSHook /etc/monkey/hook\n{HOST}    ServerName *.example.org\n")(check_loads)
need("get a certificate for an IP address", f"{ACME}    Profile shortlived\n{HOST}    ServerName 192.0.2.10\n")(check_loads)
need("get certificates for customers' domains on demand",
     f"{ACME}    AllowEndpoint http://127.0.0.1:9000/allow\n{HOST}[ACME_HOST]\n    OnDemand on\n")(check_loads)


@need("redirect HTTP to HTTPS", f"{SERVER}    Listen 443 tls\n    Certificate /etc/monkey/c.pem /etc/monkey/k.pem\n    RedirectToHTTPS on\n{HOST}")
def _(w, text):
    w.folder.joinpath("etc/monkey").mkdir(parents=True)
    w.serve(text.replace("RedirectToHTTPS on", "RedirectToHTTPS 443"))  # the port of the test is random
    assert (w.get().status, w.get()["Location"]) == (308, "https://example.org/a.txt")


@need("redirect one path", with_routes("/old  redirect 301 /new", "/* static"))
def _(w, text):
    w.serve(text)
    assert (w.get("/old").status, w.get("/old")["Location"], w.get().status) == (301, "/new", 200)


@need("match paths by a regular expression", with_routes(r"~ \.php$  status 410", r"~ (?i)\.php$  status 451", "/* static"))
def _(w, text):
    w.serve(text)
    assert [w.get(path).status for path in ("/a.php", "/a.PHP", "/a.txt")] == [410, 451, 200]


@need("rewrite a path", with_plugin("rewrite", "[REWRITE]\n    Rewrite regex ^/u/(\\d+)$ /user.php?id=$1\n[ROUTES]\n    *.php cgi\n    /* static\n")
      .replace("Load rewrite", "Load rewrite\n    Load cgi"))
def _(w, text):
    w.file("/srv/www/user.php", "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n%s' \"$QUERY_STRING\"\n", 0o755)
    w.serve(text)
    assert w.get("/u/42").text == "id=42" and w.get("/u/x").status == 404


@need("serve a single-page application", "    Fallback index.html\n")
def _(w, text):
    w.serve(text)
    assert w.get("/users/7").text.startswith("index.html")


@need("set error pages", "[ERROR_PAGES]\n    404  404.html\n    5xx  sorry.html\n[ROUTES]\n    /broken status 502\n    /* static\n")
def _(w, text):
    w.serve(text)
    assert [(w.get(path).status, w.get(path).text.split()[0]) for path in ("/none", "/broken")] == [(404, "404.html"), (502, "sorry.html")]


@need("respond with a fixed text", with_routes('/health  status 200 "ok\\n"', "/* static"))
def _(w, text):
    w.serve(text)
    assert (w.get("/health").status, w.get("/health").text) == (200, "ok\n")


COUNTS = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n%s' \"$(wc -c)\"\n"


@need("allow larger uploads", with_plugin("cgi", "    MaxBodySize 2G\n[ROUTES]\n    /* cgi\n").replace("Listen 80\n", "Listen 80\n    MaxBodySize 1K\n"))
@need("set other limits for a path", with_plugin("cgi", "[ROUTES]\n    /* cgi\n[LOCATION]\n    Path /up/*\n    MaxBodySize 2G\n"))
def _(w, text):
    w.file("/srv/www/up/count", COUNTS, 0o755)
    w.file("/srv/www/count", COUNTS, 0o755)
    w.serve(text)
    how = dict(method="POST", body=b"x" * 3_000_000)
    assert w.get("/up/count", **how).text == "3000000"
    if "[LOCATION]" in text:
        assert w.get("/count", **how).status == 413


@need("log a host to a separate file", f"{SERVER}[PLUGINS]\n    Load logger\n{HOST}    AccessLog /var/log/monkey/example.log\n"
      "[HOST]\n    ServerName other.org\n    DocumentRoot /srv/www\n")
def _(w, text):
    w.serve(text)
    assert w.get("/a.txt?one").status == w.get("/a.txt?two", host="other.org").status == 200
    log = w.log("example.log")
    assert "?one" in log and "?two" not in log


@need("exclude a path from the log", f"{SERVER}    AccessLog /var/log/monkey/access.log\n[PLUGINS]\n    Load logger\n{HOST}"
      "[ROUTES]\n    /health status 200\n    /* static\n[LOCATION]\n    Path /health\n    AccessLog off\n")
def _(w, text):
    w.serve(text)
    assert w.get("/health").status == w.get().status == 200
    log = w.log("access.log")
    assert "/a.txt" in log and "/health" not in log


# ---- Backends ----

@need("forward requests to a backend", with_routes("/api/*  proxy http://127.0.0.1:3000", "/* static", plugin="proxy"))
@need("strip a path prefix", with_routes("/api/*  proxy http://127.0.0.1:3000/", plugin="proxy"))
def _(w, text):
    w.backend("127.0.0.1:3000")
    w.serve(text)
    assert w.get("/api/x").text == ("GET /x" if "3000/" in text else "GET /api/x")


@need("set a header of requests to a backend", with_plugin("headers", "[REQUEST_HEADERS]\n    Set X-Real-IP $remote_addr\n[ROUTES]\n    /* proxy http://127.0.0.1:3000\n")
      .replace("Load headers", "Load headers\n    Load proxy"))
def _(w, text):
    backend = w.backend("127.0.0.1:3000")
    w.serve(text)
    assert w.get("/", fields=[("X-Real-IP", "192.0.2.1")]).status == 200
    assert backend.requests[-1].all("X-Real-IP") == ["127.0.0.1"]


@need("forward WebDAV `Destination`", with_routes("/dav/* proxy http://127.0.0.1:3000/ destination=absolute", plugin="proxy"))
def _(w, text):
    backend = w.backend("127.0.0.1:3000")
    w.serve(text)
    assert w.get("/dav/a", method="MOVE", fields=[("Destination", "https://example.org/dav/b")]).status == 200
    assert backend.requests[-1].all("Destination") == ["http://example.org/b"]


@need("replace a backend's error pages", with_routes("/* proxy http://127.0.0.1:3000 intercept_errors=5xx", plugin="proxy",
                                                     ) + "[ERROR_PAGES]\n    5xx sorry.html\n")
def _(w, text):
    w.backend("127.0.0.1:3000", reply=lambda _: response("a stack trace", "500 Internal Server Error"))
    w.serve(text)
    assert (w.get("/").status, w.get("/").text.split()[0]) == (500, "sorry.html")


GROUP = "[UPSTREAM]\n    Name app\n    Server a:80\n    Server b:80\n"


def start_group(w, text, bad=response("bad", "503 Service Unavailable")):
    """Starts two servers, of which the second fails, and returns them."""
    both = w.backend("a:80", reply=lambda _: response("one")), w.backend("b:80", reply=lambda _: bad)
    w.serve(text)
    return both


@need("balance load", with_routes("/* proxy http://app", plugin="proxy", before=GROUP))
def _(w, text):
    start_group(w, text, response("two"))
    assert {w.get("/").text for _ in range(8)} == {"one", "two"}


@need("check backend health", with_routes("/* proxy http://app", plugin="proxy", before=f"{GROUP}    HealthCheck /health\n    HealthText ready\n    HealthInterval 100ms\n"))
def _(w, text):
    w.backend("a:80", reply=lambda request: response("ready" if request.target == "/health" else "one"))
    w.backend("b:80", reply=lambda request: response("starting" if request.target == "/health" else "two"))
    w.serve(text)
    wait_until(lambda: {w.get("/").text for _ in range(8)} == {"one"}, "only the ready server")
    w.server.allow(r"the server .* is down")


@need("eject backends that return errors", with_routes("/* proxy http://app", plugin="proxy", before=f"{GROUP}    OutlierErrors 50\n"))
def _(w, text):
    start_group(w, text)
    wait_until(lambda: {w.get("/").text for _ in range(20)} == {"one"}, "the ejection of the failing server")


@need("limit the time of all tries", with_routes("/* proxy http://127.0.0.1:3000 total_timeout=10s", plugin="proxy"))
def _(w, text):
    w.backend("127.0.0.1:3000", reply=lambda _: iter(()))
    w.serve(text.replace("10s", "300ms"))
    assert w.get("/").status == 504


@need("proxy WebSockets", with_routes("/* proxy http://127.0.0.1:3000", plugin="proxy"))
def _(w, text):
    w.backend("127.0.0.1:3000", reply=lambda request: b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
              b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n" if request.get("Upgrade") == "websocket" else response("plain"))
    w.serve(text)
    with w.server.connect() as c:
        c.send(b"GET / HTTP/1.1\r\nHost: example.org\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
               b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        assert c.read_head().status == 101


@need("proxy gRPC or HTTP/2", with_routes("/*  proxy h2c://127.0.0.1:50051", plugin="proxy"))
def _(w, text):
    w.backend("127.0.0.1:50051", Http2Backend, lambda _: answer("over HTTP/2"))
    w.serve(text)
    assert w.get("/").text == "over HTTP/2"


@need("run PHP", with_routes("*.php  fastcgi unix:/run/php/php-fpm.sock", "/* static", plugin="fastcgi"))
def _(w, text):
    if not php_fpm.PROGRAM:
        pytest.skip("there is no php-fpm")
    w.file("/srv/www/a.php", "<?php echo 6 * 7;")
    (w.folder / "fpm").mkdir()
    fpm = w.ends.enter_context(php_fpm.Fpm(w.folder / "fpm"))
    w.replaced["unix:/run/php/php-fpm.sock"] = fpm.address
    w.serve(text)
    assert w.get("/a.php").text == "42"


@need("buffer uploads before a program starts", with_plugin("cgi", "[ROUTES]\n    /* cgi\n[CGI]\n    RequestBody spool\n"))
def _(w, text):
    w.file("/srv/www/count", COUNTS, 0o755)
    w.serve(text)
    assert w.get("/count", method="POST", body=b"x" * 100_000).text == "100000"


# ---- Access ----

AUTH = "[AUTH]\n    Location /private/\n    UserFile /etc/monkey/users\n"


@need("require a password", with_plugin("auth", AUTH))
@need("require an address or a password", with_plugin("auth", f"{AUTH}    Require address 10.0.0.0/8\n    Require valid-user\n"))
def _(w, text):
    w.file("/srv/www/private/a.txt", "secret")
    def add_user():
        users.add(w.folder / "etc/monkey/users", "ana", "swordfish", "-b", "sha256")

    w.serve(text, add_user)
    assert w.get("/private/a.txt").status == 401 and w.get().status == 200
    assert w.get("/private/a.txt", fields=list(users.basic("ana", "swordfish").items())).text == "secret"
    if "10.0.0.0/8" in text:
        w.server.stop()
        w.serve(text.replace("10.0.0.0/8", "127.0.0.0/8"))
        assert w.get("/private/a.txt").text == "secret"


@need("ask a service for permission", with_plugin("forward-auth", "[FORWARD_AUTH]\n    Location /\n    URL http://127.0.0.1:9091/verify\n"))
def _(w, text):
    w.backend("127.0.0.1:9091", reply=lambda request: response("", "200 OK" if request.get("Cookie") == "good=1" else "403 Forbidden"))
    w.serve(text)
    assert (w.get().status, w.get(fields=[("Cookie", "good=1")]).status) == (403, 200)


def check_rule(denied, allowed, prepare=lambda w: None):
    """Returns a check that requests with the first header fields are rejected, and with the second ones are not."""
    def check(w, text):
        prepare(w)
        w.serve(text)
        assert (w.get(fields=denied).status, w.get(fields=allowed).status) == (403, 200)
    return check


def security(*lines):
    return with_plugin("security", "[SECURITY]\n" + "".join(f"    {line}\n" for line in lines))


def behind_proxy(text):
    return text.replace("[SECURITY]\n", "[SECURITY]\n    TrustedProxy 127.0.0.1\n    RealAddress X-Forwarded-For\n")


def came_from(address):
    return [("X-Forwarded-For", address)]


need("allow by address", behind_proxy(security("Allow from 10.0.0.0/8", "Deny all")))(check_rule(came_from("192.0.2.1"), came_from("10.1.2.3")))
need("deny a list of networks from a file", behind_proxy(security("Deny from file:bad.txt")))(
    check_rule(came_from("198.51.100.7"), came_from("10.1.2.3"), lambda w: w.file("bad.txt", "# bad\n198.51.100.0/24\n")))
need("deny by user agent or another header", security("Deny header User-Agent *GPTBot*"))(
    check_rule([("User-Agent", "Mozilla/5.0 (GPTBot/1.2)")], [("User-Agent", "Mozilla/5.0")]))
@need("challenge browsers that may be crawlers", with_plugin("challenge", "[CHALLENGE]\n    Challenge header User-Agent *Mozilla*\n"))
def _(w, text):
    w.serve(text)
    page = w.get(fields=[("User-Agent", "Mozilla/5.0")])
    assert page.status == 403 and "data-token" in page.text and w.get(fields=[("User-Agent", "curl/8")]).status == 200


need("deny by country", behind_proxy(security("Deny country DE")).replace("Listen 80\n", "Listen 80\n    GeoDatabase geo.mmdb\n"))(
    check_rule(came_from("192.0.2.1"), came_from("10.1.2.3")))


@need("choose a route by a header, cookie or parameter", with_routes("When cookie beta *", "/*  status 202", "/* static"))
def _(w, text):
    w.serve(text)
    assert (w.get(fields=[("Cookie", "beta=1")]).status, w.get().status) == (202, 200)


# ---- Responses ----

@need("set cache headers", "[CACHE_CONTROL]\n    *.png  max-age=2592000\n")
def _(w, text):
    w.serve(text)
    assert w.get("/picture.png")["Cache-Control"] == "max-age=2592000"


@need("add a response header", with_plugin("headers", "[HEADERS]\n    Set X-A b\n"))
def _(w, text):
    w.serve(text)
    assert w.get()["X-A"] == "b"


@need("compress responses", with_plugin("compress", "[COMPRESS]\n"))
def _(w, text):
    w.file("/srv/www/long.txt", "text " * 1000)
    w.serve(text)
    reply = w.get("/long.txt", fields=[("Accept-Encoding", "gzip")])
    assert reply["Content-Encoding"] == "gzip" and gzip.decompress(reply.body) == b"text " * 1000


@need("list folders", with_plugin("dirlisting", "[DIRLISTING]\n"))
def _(w, text):
    w.serve(text)
    assert "a.txt" in w.get("/docs/").text


@need("limit the memory of the server", with_plugin("memory", "[MEMORY]\n    Limit 256M\n"))
def _(w, text):
    w.serve(text)
    assert w.get().text.startswith("a.txt")
    assert "memory" not in w.server.log, "a worker uses less"


@need("export spans to a collector", with_plugin("otlp\n    Load tracing", "", "[TRACING]\n    TraceContext on\n[OTLP]\n    Endpoint http://127.0.0.1:4318\n" + HOST))
def _(w, text):
    collector = w.backend("127.0.0.1:4318")
    w.serve(text)
    w.get()
    wait_until(lambda: any(request.target == "/v1/traces" and b"/a.txt" in request.body for request in collector.requests), "a span")


@need("limit the request rate", with_plugin("limits", "[LIMITS]\n    Requests 50/s burst 200\n").replace("Listen 80\n", "Listen 80\n    KeepAliveRequests unlimited\n"))
def _(w, text):
    w.serve(text)
    with w.server.connect() as c:
        statuses = [c.get("/a.txt", host="example.org").status for _ in range(2000)]
    assert statuses[:200] == [200] * 200 and 429 in statuses
