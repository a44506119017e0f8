# SPDX-License-Identifier: Apache-2.0
"""[REQUEST_HEADERS]: rules that change the headers that backends, programs and handlers get."""
import contextlib
import json
import signal
import time

import pytest

from backend import Backend
from cgi_scripts import ENV, environment
from http2_backend import Http2Backend
from http2_backend import answer as http2_answer
from monkey import PROTOCOLS, SECONDS
from scgi_server import Program
from users import basic, sha1

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)


def section(rules):
    return "[REQUEST_HEADERS]\n" + "".join(f"    {line.strip()}\n" for line in rules.strip().splitlines())


class Proxied:
    """A server that proxies to a backend; get() returns the headers that the backend got, as (name, value) pairs."""

    def __init__(self, monkey, stack, rules, options="", plugins=(), sections="", routes="", **keys):
        self.backend = stack.enter_context(Backend())
        self.server = monkey(plugins=["headers", "proxy", *plugins], sections=f"{section(rules)}\n{sections}\n[ROUTES]\n    {routes}\n"
                             f"    /* proxy http://{self.backend.address}{options}\n", **keys)

    def get(self, path="/", fields=(), **how):
        reply = self.server.get(path, fields=list(fields), **how)
        assert reply.status == 200, reply
        return Fields(json.loads(reply.text)["fields"])


class Fields:
    def __init__(self, pairs):
        self.pairs = pairs

    def all(self, name):
        return [value for key, value in self.pairs if key.lower() == name.lower()]


@pytest.fixture
def stack():
    with contextlib.ExitStack() as stack:
        yield stack


# ---- Rules ----

@every_protocol
def test_rules_change_what_the_backend_gets(monkey, site, stack):
    seen = Proxied(monkey, stack, """
        Set X-Real-IP $remote_addr
        Set X-Tenant blue
        Add X-Many 2
        Remove X-Secret
        Remove Cookie
        Set User-Agent "an agent, with \\"quotes\\""
        Set X-Where $scheme-$host$path
        Set X-Empty ""
    """).get("/a%20b", [("X-Real-IP", "6.6.6.6"), ("X-Tenant", "forged"), ("x-tenant", "twice"), ("X-Many", "1"),
                                        ("X-Secret", "s"), ("Cookie", "a=b"), ("User-Agent", "client"), ("X-Kept", "kept")])
    assert seen.all("X-Real-IP") == ["127.0.0.1"] and seen.all("X-Tenant") == ["blue"]
    assert seen.all("X-Many") == ["1", "2"] and not seen.all("X-Secret") and not seen.all("Cookie")
    assert seen.all("User-Agent") == ['an agent, with "quotes"'] and seen.all("X-Kept") == ["kept"]
    assert seen.all("X-Where")[0].endswith("-localhost/a%20b") and seen.all("X-Empty") == [""]


def test_rules_apply_in_order(monkey, site, stack):
    seen = Proxied(monkey, stack, "Add X-A 1\nRemove X-A\nAdd X-A 2\nSet X-B 1\nAdd X-B 2\nSet X-C 1\nRemove x-c").get()
    assert seen.all("X-A") == ["2"] and seen.all("X-B") == ["1", "2"] and not seen.all("X-C")


def test_rule_with_a_path_applies_below_it_only(monkey, site, stack):
    proxied = Proxied(monkey, stack, "Set /api/* X-Api yes\nSet *.json X-Json yes")
    assert proxied.get("/api/x").all("X-Api") and not proxied.get("/other").all("X-Api")
    assert proxied.get("/a.json").all("X-Json") and not proxied.get("/api/x").all("X-Json")


def test_names_that_programs_confuse_are_replaced_as_well(monkey, site, stack):
    seen = Proxied(monkey, stack, "Set X-Tenant blue\nRemove X-Debug", " underscores=on").get("/", [
        ("X_Tenant", "forged"), ("x_tenant", "forged"), ("X_Debug", "1"), ("X.Debug", "1"), ("X_Other", "kept")])
    assert [value for _, value in seen.pairs].count("forged") == 0 and seen.all("X-Tenant") == ["blue"]
    assert not seen.all("X_Debug") and not seen.all("X.Debug") and seen.all("X_Other") == ["kept"]


def test_client_cannot_remove_a_header_of_the_server_with_connection(monkey, site, stack):
    seen = Proxied(monkey, stack, "Set X-Real-IP $remote_addr\nSet Authorization \"Bearer inner\"").get(
        "/", [("Connection", "X-Real-IP, authorization, X-Mine"), ("X-Mine", "1")])
    assert seen.all("X-Real-IP") == ["127.0.0.1"] and seen.all("Authorization") == ["Bearer inner"] and not seen.all("X-Mine")


@pytest.mark.parametrize("how", ["replace", "append", "off"])
def test_set_forwarded_headers_replace_those_of_the_proxy(monkey, site, stack, how):
    seen = Proxied(monkey, stack, "Set X-Forwarded-Proto https\nSet X-Forwarded-Port 443", f" forwarded={how}").get(
        "/", [("X-Forwarded-Proto", "gopher"), ("X-Forwarded-For", "6.6.6.6")])
    assert seen.all("X-Forwarded-Proto") == ["https"] and seen.all("X-Forwarded-Port") == ["443"]
    assert seen.all("X-Forwarded-For") == {"replace": ["127.0.0.1"], "append": ["6.6.6.6, 127.0.0.1"], "off": ["6.6.6.6"]}[how]
    assert len(seen.all("Forwarded")) == (how != "off")


def test_variables_cannot_inject_headers(monkey, site, stack):
    seen = Proxied(monkey, stack, "Set X-Path $path\nSet X-Query $query").get("/a%0d%0aX-Evil:%20yes?q%0d%0aX-Evil:1")
    assert seen.all("X-Path") == ["/a%0D%0AX-Evil:%20yes"] and not seen.all("X-Evil") and seen.all("X-Query") == ["q%0d%0aX-Evil:1"]


def test_too_many_headers_get_a_431(monkey, site, stack):
    rules = "\n".join(f"Add X-Own-{i} 1" for i in range(10))
    proxied = Proxied(monkey, stack, rules, server="MaxHeaders 250")
    fields = [(f"X-Client-{i}", "1") for i in range(246)]
    assert proxied.server.get("/", fields=fields).status == 431
    assert proxied.get("/", fields[:230]).all("X-Own-9") == ["1"]
    proxied.server.allow("cannot change the request header")


# ---- Trailers ----

TRAILERS = [("X-Tenant", "forged"), ("x_tenant", "forged"), ("X-Secret", "forged"), ("X-Many", "forged"), ("X-Sum", "7")]


@every_protocol
def test_client_cannot_send_a_changed_header_as_a_trailer(monkey, site, stack):
    """Even if the head has no header that a rule could remove."""
    proxied = Proxied(monkey, stack, "Set X-Tenant blue\nRemove X-Secret\nAdd X-Many 2", " underscores=on stream")
    for trailers in (TRAILERS, TRAILERS[:-1]):
        with proxied.server.connect() as c:
            c.ask("/", "POST", streamed=True)
            c.more(b"content")
            c.done(trailers)
            assert c.read().status == 200
    first, second = proxied.backend.requests
    assert [(n.lower(), v) for n, v in first.trailers] == [("x-sum", "7")] and second.trailers == []
    assert first.body == second.body == b"content" and first.all("X-Tenant") == ["blue"]


@every_protocol
def test_client_cannot_send_a_changed_header_as_a_trailer_to_http2_backends(monkey, site, stack):
    backend = stack.enter_context(Http2Backend(lambda _: http2_answer("hello")))
    server = monkey(plugins=["headers", "proxy"], sections=section("Set X-Tenant blue\nRemove X-Secret\nAdd X-Many 2")
                    + f"[ROUTES]\n    /* proxy h2c://{backend.address} underscores=on\n")
    with server.connect() as c:
        c.ask("/", "POST", streamed=True)
        c.more(b"content")
        c.done(TRAILERS)
        assert c.read().status == 200
    assert backend.requests[0].trailers == [("x-sum", "7")] and dict(backend.requests[0].fields)["x-tenant"] == "blue"


@pytest.mark.parametrize("protocol", ["h2"], indirect=True)
def test_http2_request_with_length_0_cannot_send_a_changed_header_as_a_trailer(monkey, site, stack):
    proxied = Proxied(monkey, stack, "Set X-Tenant blue")
    with proxied.server.connect() as c:
        c.ask("/", "POST", [("Content-Length", "0")], streamed=True)
        c.done(TRAILERS[:1] + TRAILERS[-1:])
        assert c.read().status == 200
    assert ("forged" in str(proxied.backend.requests[0].trailers)) is False


def test_path_of_a_rule_counts_for_trailers(monkey, site, stack):
    proxied = Proxied(monkey, stack, "Set /api/* X-Tenant blue")
    body = b"0\r\nX-Tenant: client\r\n\r\n"
    for path, trailers in (("/api/x", []), ("/x", [("X-Tenant", "client")])):
        proxied.server.get(path, "POST", [("Transfer-Encoding", "chunked")], body)
        assert proxied.backend.requests[-1].trailers == trailers


# ---- Paths that programs interpret differently ----

VARIANTS = ("/api%2Fx", "/api;v=1/x", "/api%3Bv/x", "/x%2F..%2Fapi/x")


@pytest.mark.parametrize("target", VARIANTS)
def test_path_that_a_backend_may_read_as_that_of_a_rule_is_refused(monkey, site, stack, target):
    proxied = Proxied(monkey, stack, 'Set /api/* Authorization "Bearer server"')
    assert proxied.server.get(target, fields=[("Authorization", "mine")]).status == 400
    assert proxied.get("/api/x", [("Authorization", "mine")]).all("Authorization") == ["Bearer server"]
    assert proxied.get("/other;v=1/a%2Fb", [("Authorization", "mine")]).all("Authorization") == ["mine"]


def test_path_that_a_backend_may_read_as_one_without_a_rule_is_refused(monkey, site, stack):
    proxied = Proxied(monkey, stack, "Remove /a;* Cookie")
    assert proxied.server.get("/a;b/x", fields=[("Cookie", "a=b")]).status == 400


def test_raw_paths_and_rules_without_a_path_accept_every_interpretation(monkey, site, stack):
    proxied = Proxied(monkey, stack, "Set X-Tenant blue")
    assert proxied.get("/api%2Fx", [("X-Tenant", "forged")]).all("X-Tenant") == ["blue"]
    proxied = Proxied(monkey, stack, "Set /api/* X-Tenant blue", options=" paths=raw")
    assert proxied.get("/api%2Fx", [("X-Tenant", "forged")]).all("X-Tenant") == ["forged"]


def test_rest_of_the_path_after_a_script_counts_as_a_path(monkey, site, stack):
    proxied = Proxied(monkey, stack, "Set /admin/* X-Role admin\nSet /index.php/* X-Script yes")
    assert proxied.server.get("/index.php/admin/x", fields=[("X-Role", "forged")]).status == 400
    assert proxied.get("/index.php/x").all("X-Script") == ["yes"]


# ---- Index files and fallbacks ----

@pytest.fixture
def app(monkey, site, stack):
    site.add("index.php", "script")
    site.add("folder/index.php", "script")

    def start(rules, **keys):
        backend = stack.enter_context(Backend())
        sections = f"{section(rules)}\n{keys.pop('sections', '')}\n[ROUTES]\n    *.php proxy http://{backend.address}\n    /* static\n"
        return monkey(plugins=["headers", "proxy", *keys.pop("plugins", ())], host="Index index.php\nFallback index.php", sections=sections, **keys)
    return start


def delivered(server, target, fields=(), **how):
    reply = server.get(target, fields=list(fields), **how)
    assert reply.status == 200, reply
    return Fields(json.loads(reply.text)["fields"])


TARGETS = ("/", "/folder/", "/blog/post", "/index.php")


@every_protocol
@pytest.mark.parametrize("target", TARGETS)
def test_rules_apply_to_the_index_and_the_fallback(app, target):
    server = app("Set *.php X-Tenant blue\nAdd X-N 1\nAdd *.php X-Many 1\nRemove *.php X-Secret")
    seen = delivered(server, target, [("X-Tenant", "forged"), ("X-N", "0"), ("X-Secret", "s")])
    assert seen.all("X-Tenant") == ["blue"] and seen.all("X-N") == ["0", "1"] and seen.all("X-Many") == ["1"] and not seen.all("X-Secret")


def test_rules_for_the_requested_path_still_apply_to_its_fallback(app):
    server = app("Set *.php X-Order last\nSet /blog/* X-Order first\nSet /blog/* X-Blog yes\nRemove /blog/* Cookie")
    seen = delivered(server, "/blog/post", [("X-Blog", "forged"), ("Cookie", "a=b")])
    assert seen.all("X-Blog") == ["yes"] and not seen.all("Cookie") and seen.all("X-Order") == ["first"]
    assert delivered(server, "/other", [("X-Blog", "mine")]).all("X-Blog") == ["mine"]


def test_form_that_is_posted_to_a_folder_gets_the_rules_of_its_index(app):
    assert delivered(app("Set *.php X-Tenant blue"), "/folder/", [("X-Tenant", "forged")], method="POST", body=b"a=b").all("X-Tenant") == ["blue"]


def test_rules_for_an_index_of_a_rewritten_path(app):
    server = app("Set *.php X-Tenant blue\nSet /old X-Old yes", plugins=["rewrite"], sections="[REWRITE]\n    Rewrite regex ^/old$ /new\n")
    seen = delivered(server, "/old", [("X-Tenant", "forged"), ("X-Old", "client")])
    assert seen.all("X-Tenant") == ["blue"] and seen.all("X-Old") == ["client"]


def test_rule_that_fails_for_the_index_rejects_the_request(app):
    server = app("\n".join(f"Add *.php X-Own-{i} 1" for i in range(10)), server="MaxHeaders 250")
    assert server.get("/", fields=[(f"X-Client-{i}", "1") for i in range(246)]).status == 431
    server.allow("cannot change the request header")


# ---- Neighbors ----

def test_programs_get_the_headers_as_variables(monkey, site, stack):
    program = stack.enter_context(Program())
    site.add("app", ENV, mode=0o755)
    server = monkey(plugins=["headers", "cgi", "scgi"], sections=section("Set X-Real-IP $remote_addr\nRemove Cookie\nSet X-Tenant a")
                    + f"[ROUTES]\n    /app cgi\n    /* scgi {program.address} underscores=on\n")
    fields = [("X-Real-IP", "6.6.6.6"), ("X_Tenant", "forged"), ("Cookie", "a=b")]
    for variables in (environment(server.get("/app", fields=fields)), json.loads(server.get("/x", fields=fields).text)["variables"]):
        assert variables["HTTP_X_REAL_IP"] == "127.0.0.1" and variables["HTTP_X_TENANT"] == "a" and "HTTP_COOKIE" not in variables


def test_access_checks_see_the_headers_of_the_client(monkey, site, stack, tmp_path):
    (tmp_path / "users").write_text(f"alice:{sha1('secret')}\n")
    proxied = Proxied(monkey, stack, "Remove Authorization\nSet X-User $remote_user", plugins=["auth"],
                      sections=f"[AUTH]\n    Location /\n    UserFile users\n")
    assert proxied.server.get("/").status == 401
    seen = proxied.get("/", [*basic("alice", "secret").items(), ("X-User", "root")])
    assert seen.all("X-User") == ["alice"] and not seen.all("Authorization")
    proxied.server.allow("hashed with")


def test_compression_and_log_use_the_headers_of_the_client(monkey, site, stack):
    backend = stack.enter_context(Backend(lambda r: b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Seen: %s\r\nContent-Length: 3000\r\n\r\n"
                                          % str(r.get("Accept-Encoding")).encode() + b"x" * 3000))
    server = monkey(plugins=["headers", "compress", "proxy"], sections=section("Remove Accept-Encoding") + "[COMPRESS]\n"
                    + f"[ROUTES]\n    /* proxy http://{backend.address}\n")
    reply = server.get("/", fields=[("Accept-Encoding", "gzip")])
    assert reply["X-Seen"] == "None" and reply["Content-Encoding"] == "gzip"


def test_rules_apply_once_after_a_rewrite(monkey, site, stack):
    proxied = Proxied(monkey, stack, "Add X-N 1\nAdd /new X-New yes", plugins=["rewrite"], sections="[REWRITE]\n    Rewrite regex ^/old$ /new\n")
    seen = proxied.get("/old", [("X-N", "0")])
    assert seen.all("X-N") == ["0", "1"] and seen.all("X-New") == ["yes"]


def test_rules_apply_once_after_a_rewrite_by_a_handler(monkey, site, stack):
    program = stack.enter_context(Program(lambda *_: b"Location: /inner\r\n\r\n"))
    proxied = Proxied(monkey, stack, "Add X-N 1", plugins=["scgi"], routes=f"/redirect scgi {program.address}")
    assert proxied.get("/redirect", [("X-N", "0")]).all("X-N") == ["0", "1"]


def test_a_host_has_its_own_rules_and_a_reload_changes_them(monkey, site, stack):
    proxied = Proxied(monkey, stack, "Set X-Rule one")
    assert proxied.get().all("X-Rule") == ["one"]
    path = proxied.server.config
    path.write_text(path.read_text().replace("Set X-Rule one", "Set X-Rule two"))
    proxied.server.tell(signal.SIGHUP)
    deadline = time.monotonic() + SECONDS
    while proxied.get().all("X-Rule") != ["two"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_files_are_served_with_changed_conditions(monkey, site):
    site.add("a.txt", "0123456789")
    server = monkey(plugins=["headers"], sections=section("Remove Range"))
    assert server.get("/a.txt", fields=[("Range", "bytes=1-2")]).status == 200


# ---- Destination ----

@pytest.mark.parametrize("target, options, expected", [
    ("", "", "/dav/b"), ("/", "", "/b"), ("/", " destination=path", "/b"),
    ("/", " destination=absolute", "http://localhost/b"), ("/files/", " destination=absolute host=app.example", "http://app.example/files/b"),
    ("", " destination=absolute host=upstream", "http://{backend}/dav/b")])
def test_destination_is_adapted_to_the_backend(monkey, site, stack, target, options, expected):
    backend = stack.enter_context(Backend())
    server = monkey(plugins=["proxy"], sections=f"[ROUTES]\n    /dav/* proxy http://{backend.address}{target}{options}\n")
    for method in ("MOVE", "COPY"):
        reply = server.get("/dav/a", method=method, fields=[("Destination", "https://localhost/dav/b")])
        assert reply.status == 200
        assert dict(json.loads(reply.text)["fields"])["Destination"] == expected.format(backend=backend.address)
        assert server.get("/dav/a", method=method, fields=[("Destination", "http://elsewhere/dav/b")]).status == 502
        assert server.get("/dav/a", method=method, fields=[("Destination", "/outside/b")]).status == (502 if target else 200)


# ---- Mistakes ----

@pytest.mark.parametrize("rule, message", [
    ("Set Content-Length 5", "request header `Content-Length` cannot be set"),
    ("Set Transfer-Encoding chunked", "request header `Transfer-Encoding` cannot be set"),
    ("Remove Transfer-Encoding", "request header `Transfer-Encoding` cannot be removed"),
    ("Set Connection close", "request header `Connection` cannot be set"), ("Set TE trailers", "request header `TE` cannot be set"),
    ("Remove Upgrade", "request header `Upgrade` cannot be removed"), ("Set Keep-Alive x", "request header `Keep-Alive` cannot be set"),
    ("Set Expect 100-continue", "request header `Expect` cannot be set"), ("Set Host a", "the option `host=` of the route"),
    ("Remove Host", "request header `Host` cannot be removed"), ("Set Destination /x", "`destination=` of the route"),
    ("Set Client-Cert x", "`certificate=` of the route"), ("Set X_Real_IP x", "use `-`"), ("Set Proxy x", "request header `Proxy` cannot be set"),
    ("Set Via x", "request header `Via` cannot be set"), ("Set Sec-WebSocket-Key x", "cannot be set"),
    ("Set status:200 X-A b", "`status:200` is a condition on responses"), ("Set type:text/html X-A b", "is a condition on responses"),
    ("Set X-A", "missing value"), ("Set", "`Set` has no value"), ("Set /a", "missing header name"), ("Remove X-A b", "unexpected `b`"), ("Set X-A: b", "`X-A:` is neither"),
    ("Set X-A $nothing", "nothing"), ('Set X-A "a\\tb\x01"', "control byte 0x01"), ("Drop X-A", "expected Add, Set or Remove"),
])
def test_mistake_in_a_rule_is_reported(run, site, tmp_path, rule, message):
    (tmp_path / "site").mkdir(exist_ok=True)
    (tmp_path / "monkey.conf").write_text(f"[PLUGINS]\n    Load headers\n[SERVER]\n    Listen 127.0.0.1:0\n[HOST]\n    DocumentRoot site\n"
                                          f"[REQUEST_HEADERS]\n    {rule}\n")
    result = run("-t", "-c", tmp_path / "monkey.conf")
    assert result.code == 3 and message in result.err and "monkey.conf:8:" in result.err, result.err


def test_headers_that_can_only_be_removed(monkey, site, stack):
    seen = Proxied(monkey, stack, "Remove Via\nRemove X_User\nRemove Client-Cert", " underscores=on certificate=pass").get(
        "/", [("Via", "1.0 old"), ("X_User", "a"), ("Client-Cert", ":x:")])
    assert not seen.all("X_User") and not seen.all("Client-Cert") and "old" not in seen.all("Via")[0]
