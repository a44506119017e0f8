# SPDX-License-Identifier: Apache-2.0
"""[FORWARD_AUTH]: another service decides about each request. Every failure of the service rejects the request."""
import contextlib
import json
import re
import signal
import socket
import threading
import time

import pytest

import services
from backend import Backend, response
from cgi_scripts import ENV, environment
from monkey import PROTOCOLS, SECONDS

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)

ALLOWED = [("Remote-User", "alice"), ("Remote-Groups", "admins, users"), ("X-Internal", "secret")]


def decide(request):
    """A service: the cookie `session=alice` is valid, `session=banned` is not allowed, and others have to log in."""
    cookie = request.get("Cookie") or ""
    if "session=alice" in cookie:
        return response("allowed", fields=ALLOWED)
    if "session=banned" in cookie:
        return response("banned", "403 Forbidden")
    return response("log in", "401 Unauthorized", [("WWW-Authenticate", 'Bearer realm="x"'), ("Set-Cookie", "state=1"), ("Set-Cookie", "b=2")])


ALICE = [("Cookie", "session=alice")]
KEYS = "Location /\nCopyHeaders Remote-User Remote-Groups\nUserHeader Remote-User\n"


def section(service, keys=KEYS, path="/verify?a=b"):
    address = service if isinstance(service, str) else service.address
    return "[FORWARD_AUTH]\n" + "".join(f"    {line}\n" for line in f"{keys}URL http://{address}{path}".splitlines())


@pytest.fixture
def stack():
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def service(stack):
    return stack.enter_context(Backend(decide))


@pytest.fixture
def program(stack):
    return stack.enter_context(Backend())


@pytest.fixture
def guarded(monkey, site, service, program):
    """`guarded(more keys)`: a server whose routes all lead to `program`, guarded by `service`."""
    def start(keys="", sections="", plugins=(), routes="", of=None, base=KEYS, **how):
        return monkey(plugins=["forward-auth", "proxy", *plugins], sections=section(of or service, base + keys)
                      + f"{sections}\n[ROUTES]\n    {routes}\n    /* proxy http://{program.address}\n", **how)
    return start


def fields(reply):
    assert reply.status == 200, reply
    return json.loads(reply.text)["fields"]


def values(reply, name):
    return [value for key, value in fields(reply) if key.lower() == name.lower()]


# ---- Decisions ----

@every_protocol
def test_allowed_request_gets_the_headers_of_the_answer(guarded, service, program):
    server = guarded()
    reply = server.get("/a%20b?q=1", fields=[*ALICE, ("Remote-User", "root"), ("remote_user", "root"), ("Remote-Groups", "root")])
    assert values(reply, "Remote-User") == ["alice"] and values(reply, "Remote-Groups") == ["admins, users"]
    assert not values(reply, "X-Internal") and not values(reply, "remote_user") and "root" not in reply.text


@every_protocol
def test_rejected_request_gets_status_and_headers_of_the_answer(guarded, program):
    server = guarded()
    reply = server.get("/x")
    assert reply.status == 401 and reply["WWW-Authenticate"] == 'Bearer realm="x"' and reply.all("Set-Cookie") == ["state=1", "b=2"]
    assert server.get("/x", fields=[("Cookie", "session=banned")]).status == 403
    assert not program.requests


@every_protocol
@pytest.mark.parametrize("status", ["301 a", "302 Found", "303 See Other", "307 a", "308 a"])
def test_redirection_is_passed_on(guarded, stack, status, program):
    of = stack.enter_context(Backend(lambda _: response("body", status, [("Location", "https://login.example/?rd=x"), ("Set-Cookie", "a=b"), ("X-No", "1")])))
    server = guarded(of=of)
    for method in ("GET", "HEAD"):
        reply = server.get("/x", method=method)
        assert reply.status == int(status[:3]) and reply["Location"] == "https://login.example/?rd=x" and reply["Set-Cookie"] == "a=b"
        assert "X-No" not in reply and not reply.body
    assert not program.requests


@pytest.mark.parametrize("sent, seen", [("app.example.", "app.example"), ("app.example.:8080", "app.example:8080"), ("[::1]:80", "[::1]:80"),
                                        ("App.EXAMPLE", "app.example"), ("APP.example.:8080", "app.example:8080"), ("[::FFFF:1]:80", "[::ffff:1]:80")])
@every_protocol
def test_service_gets_the_host_in_lower_case_without_a_trailing_dot(guarded, service, sent, seen):
    guarded().get("/x", host=sent, fields=ALICE)
    request = service.requests[-1]
    assert request.get("X-Original-Host") == request.get("X-Forwarded-Host") == seen
    assert request.get("X-Original-URL").endswith(f"://{seen}/x")


def test_service_gets_what_it_needs_to_decide(guarded, service):
    server = guarded(host="ServerName app.example")
    server.get("/a%20b/../c?q=1", method="POST", body=b"content", host="app.example:8080", fields=[
        *ALICE, ("Authorization", "Bearer x"), ("X-Original-URI", "/forged"), ("X-Forwarded-For", "6.6.6.6"), ("X-Forwarded-Uri", "/forged"),
        ("Range", "bytes=1-"), ("If-None-Match", "*"), ("Content-Type", "text/plain"), ("Connection", "X-Hop"), ("X-Hop", "1"),
        ("Remote-User", "root"), ("Accept", "text/html"), ("Expect", "100-continue")][:-1])
    (seen,) = service.requests
    assert (seen.method, seen.target, seen.body) == ("GET", "/verify?a=b", b"")
    expected = {"Host": service.address, "X-Original-Method": "POST", "X-Original-URI": "/c?q=1", "X-Forwarded-Method": "POST",
                "X-Forwarded-URI": "/c?q=1", "X-Forwarded-Host": "app.example:8080", "X-Forwarded-Proto": "http", "X-Forwarded-For": "127.0.0.1",
                "X-Real-IP": "127.0.0.1", "X-Original-URL": "http://app.example:8080/c?q=1", "X-Original-Host": "app.example:8080",
                "Cookie": "session=alice", "Authorization": "Bearer x", "Accept": "text/html"}
    assert {name: seen.all(name) for name in expected} == {name: [value] for name, value in expected.items()}
    for name in ("Range", "If-None-Match", "Content-Type", "Content-Length", "Transfer-Encoding", "X-Hop", "Remote-User", "Connection"):
        assert not seen.all(name), name


PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CONTEXT = [("X-Request-Id", "forged"), ("traceparent", PARENT), ("tracestate", "a=1")]


@every_protocol
def test_service_gets_the_context_of_the_request_and_not_the_clients(guarded, service, program):
    server = guarded(plugins=["tracing"], top="[TRACING]\n    RequestId on\n    TraceContext on\n")
    reply = server.get("/x", fields=[*ALICE, *CONTEXT, ("X.Request.Id", "forged"), ("X_Request_Id", "forged")])
    (asked,) = service.requests
    (passed,) = program.requests
    assert asked.all("X-Request-Id") == [reply["X-Request-Id"]] == passed.all("X-Request-Id")
    assert asked.all("traceparent") == passed.all("traceparent") and len(asked.all("traceparent")) == 1
    assert PARENT[3:35] not in asked.get("traceparent")
    assert "forged" not in str(asked.fields) and not asked.all("tracestate")


@every_protocol
def test_service_gets_the_context_of_a_trusted_proxy(guarded, service):
    server = guarded(plugins=["tracing", "security"],
                     top="[TRACING]\n    RequestId on\n    TraceContext on\n[SECURITY]\n    TrustedProxy 127.0.0.1\n")
    server.get("/x", fields=[*ALICE, *CONTEXT])
    assert [service.requests[-1].all(name) for name, _ in CONTEXT] == [[value] for _, value in CONTEXT]


def test_service_gets_no_context_without_tracing(guarded, service, program):
    guarded().get("/x", fields=[*ALICE, *CONTEXT, ("X.Request.Id", "forged")])
    assert not any(service.requests[-1].all(name) for name in ("X-Request-Id", "X.Request.Id", "traceparent", "tracestate"))
    assert [program.requests[-1].all(name) for name, _ in CONTEXT] == [[value] for _, value in CONTEXT]


@pytest.mark.parametrize("answer", [
    "500 a", "503 a", "404 Not Found", "400 a", "407 a", "429 a", "304 Not Modified", "302 without Location", "201 ok", "204 No Content"])
def test_only_success_allows_a_request(guarded, stack, program, answer):
    of = stack.enter_context(Backend(lambda _: response("", answer)))
    server = guarded(of=of)
    allowed = answer[0] == "2"
    assert server.get("/x", fields=ALICE).status == (200 if allowed else 502)
    assert len(program.requests) == allowed
    if not allowed:
        server.allow("answered with status")
        assert f"status {answer[:3]}: 502" in server.log


def test_cookies_of_a_permission_reach_the_client(guarded, stack):
    of = stack.enter_context(Backend(lambda _: response("", fields=[("Set-Cookie", "session=renewed; Secure"), ("Set-Cookie", "x=y")])))
    reply = guarded(of=of).get("/")
    assert reply.status == 200 and reply.all("Set-Cookie") == ["session=renewed; Secure", "x=y"]


def test_repeated_headers_are_copied_and_missing_ones_removed(guarded, stack):
    of = stack.enter_context(Backend(lambda _: response("", fields=[("Remote-Groups", "a"), ("Remote-Groups", "b")])))
    reply = guarded(of=of).get("/", fields=[("Remote-User", "root"), ("Remote-Groups", "root")])
    assert values(reply, "Remote-Groups") == ["a", "b"] and not values(reply, "Remote-User")


def test_user_is_known_to_variables_and_programs(monkey, site, service):
    site.add("app", ENV, mode=0o755)
    server = monkey(plugins=["forward-auth", "cgi", "headers"], sections=section(service) + "[HEADERS]\n    Set X-User $remote_user\n"
                    "[ROUTES]\n    /app cgi\n")
    reply = server.get("/app", fields=[*ALICE, ("Remote-User", "root")])
    variables = environment(reply)
    assert variables["REMOTE_USER"] == "alice" and variables["HTTP_REMOTE_USER"] == "alice" and reply["X-User"] == "alice"
    assert variables["HTTP_REMOTE_GROUPS"] == "admins, users"


# ---- Locations ----

def test_location_covers_its_paths_and_variants(guarded, program):
    server = guarded(base="Location /private/\nCopyHeaders Remote-User\n", routes="/raw/* proxy http://127.0.0.1:1 paths=raw")
    for path in ("/private/x", "/private", "/other/../private/x", "//private/x", "/private%2Fx", "/private;v=1/x", "/%70rivate/x"):
        assert server.get(path).status in (401, 400), path
    assert not program.requests
    assert server.get("/public").status == 200 and server.get("/privates").status == 200


def test_clients_cannot_send_identity_headers_anywhere_on_the_host(guarded):
    server = guarded(base="Location /private/\nCopyHeaders Remote-User\nUserHeader Remote-Name\n")
    reply = server.get("/public", fields=[("Remote-User", "root"), ("Remote_User", "root"), ("Remote-Name", "root"), ("Other", "root")])
    assert [value for _, value in fields(reply)].count("root") == 1


@every_protocol
@pytest.mark.parametrize("path, cookies", [("/", ALICE), ("/public", [])])
def test_clients_cannot_send_identity_headers_as_trailers(guarded, program, path, cookies):
    server = guarded(base="Location /\nCopyHeaders Remote-User Remote-Groups X-Absent\n",
                     sections=section("127.0.0.1:1", "Location /public\nCopyHeaders Remote-Name\n").partition("    URL")[0] + "    URL off\n")
    with server.connect() as c:
        c.ask(path, "POST", cookies, streamed=True)
        c.more(b"content")
        c.done([("Remote-User", "admin"), ("remote-groups", "admin"), ("X-Absent", "admin"), ("Remote-Name", "admin"), ("X-Sum", "7")])
        assert c.read().status == 200
    assert [(n.lower(), v) for n, v in program.requests[0].trailers] == [("x-sum", "7")]


@every_protocol
@pytest.mark.parametrize("path", ["/admin;a/x", "/admin%2Fx", "/a/%5Cadmin", "/admin%20/x", "/x%253b"])
def test_path_that_a_backend_may_read_differently_is_rejected(guarded, service, program, path):
    """The service decides about the path as the client sent it: a rule of the service for /admin/ would not apply."""
    server = guarded(routes=f"/raw/* proxy http://{program.address} paths=raw")
    assert server.get(path, fields=ALICE).status == 400 and not program.requests
    assert server.get(f"/raw{path}", fields=ALICE).status == 200
    assert [r.target for r in program.requests] == [f"/raw{path}"]
    assert [r.get("X-Original-URI") for r in service.requests] == [path, f"/raw{path}"]


def test_ambiguous_path_outside_of_a_location_passes(guarded, program):
    assert guarded(base="Location /private/\n").get("/public;a/x").status == 200
    assert [r.target for r in program.requests] == ["/public;a/x"]


def test_path_after_a_script_and_destination_pass(guarded, program):
    server = guarded()
    assert server.get("/index.php/a", fields=ALICE).status == 200
    assert server.get("/a", method="MOVE", fields=[*ALICE, ("Destination", "/b")]).status == 200


def test_part_of_a_location_can_be_exempt(guarded, service):
    server = guarded(sections="[FORWARD_AUTH]\n    Location /public/\n    URL off\n[FORWARD_AUTH]\n    Location /assets\n    URL off\n")
    assert server.get("/public/x").status == 200 and server.get("/assets.css").status == 200 and server.get("/x").status == 401
    assert len(service.requests) == 1


def test_hosts_have_separate_sections(monkey, site, service, program):
    server = monkey(plugins=["forward-auth"], host="ServerName one", sections=section(service) + """
[HOST]
    ServerName two
    DocumentRoot site
""")
    site.add("index.html", "home")
    assert server.get("/", host="one").status == 401 and server.get("/", host="two").text == "home"


def test_login_url_gets_the_escaped_url_of_the_request(guarded):
    server = guarded(keys="LoginURL https://auth.example/start?rd=\n")
    reply = server.get("/a?b=c&d=%20e", host="app.example")
    assert reply.status == 302 and reply["Location"] == "https://auth.example/start?rd=http%3A%2F%2Fapp.example%2Fa%3Fb%3Dc%26d%3D%2520e"
    assert reply.all("Set-Cookie") == ["state=1", "b=2"] and "WWW-Authenticate" not in reply
    assert server.get("/a", method="POST", body=b"x").status == 401
    assert server.get("/a", fields=[("Cookie", "session=banned")]).status == 403


def test_explain_names_the_service(guarded, service, run):
    server = guarded()
    result = run("-c", server.config, "explain", "GET", "http://localhost/x")
    assert "requires the permission of http://" in result.out and "answer    401" in result.out
    assert [r.get("X-Forwarded-For") for r in service.requests] == ["unknown"]


# ---- Neighbors ----

@every_protocol
def test_file_is_served_after_permission_only(monkey, site, service):
    site.add("secret.txt", "secret")
    server = monkey(plugins=["forward-auth"], sections=section(service))
    assert server.get("/secret.txt").status == 401 and server.get("/secret.txt", fields=ALICE).text == "secret"
    assert server.get("/secret.txt", fields=[*ALICE, ("If-None-Match", "*")]).status == 304


@every_protocol
def test_upload_is_decided_before_its_body(guarded, program):
    server = guarded()
    with server.connect() as c:
        reply = c.get("/upload", method="POST", body=b"x" * 100_000, fields=ALICE)
        assert reply.status == 200 and json.loads(reply.text)["body"] == "x" * 100_000
    assert server.get("/upload", method="POST", body=b"x" * 100_000).status == 401
    assert len(program.requests) == 1


def test_upgrade_is_decided_first(monkey, site, service, stack):
    tunnel = stack.enter_context(Backend(lambda r: b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\nhello"))
    server = monkey(plugins=["forward-auth", "proxy"], sections=section(service) + f"[ROUTES]\n    /* proxy http://{tunnel.address}\n")
    for cookie, status in (("a=b", b"401"), ("session=alice", b"101")):
        with server.connect() as c:
            c.send(f"GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: other\r\nCookie: {cookie}\r\n\r\n".encode())
            assert c.read_head().status == int(status)
    assert not service.requests[0].all("Upgrade") and len(tunnel.requests) == 1


def test_rewritten_request_asks_once_and_keeps_its_headers(guarded, service):
    server = guarded(plugins=["rewrite"], sections="[REWRITE]\n    Rewrite regex ^/old$ /new\n")
    reply = server.get("/old", fields=[*ALICE, ("Remote-User", "root")])
    assert json.loads(reply.text)["target"] == "/new" and values(reply, "Remote-User") == ["alice"]
    assert [r.get("X-Original-URI") for r in service.requests] == ["/old"]


def test_rewrite_by_a_handler_keeps_the_headers(guarded, stack, service):
    from scgi_server import Program
    inner = stack.enter_context(Program(lambda *_: b"Location: /inner\r\n\r\n"))
    server = guarded(plugins=["scgi"], routes=f"/redirect scgi {inner.address}")
    reply = server.get("/redirect", fields=[*ALICE, ("Remote-User", "root")])
    assert values(reply, "Remote-User") == ["alice"] and inner.requests[0]["HTTP_REMOTE_USER"] == "alice" and len(service.requests) == 1


def test_password_and_service_must_both_agree(guarded, service, tmp_path):
    from users import basic, sha1
    (tmp_path / "users").write_text(f"ana:{sha1('secret')}\n")
    server = guarded(plugins=["auth"], sections="[AUTH]\n    Location /\n    UserFile users\n")
    assert server.get("/", fields=ALICE).status == 401 and server.get("/", fields=list(basic("ana", "secret").items())).status == 401
    assert server.get("/", fields=[*ALICE, *basic("ana", "secret").items()]).status == 200
    server.allow("hashed with")


def test_reload_keeps_requests_that_wait(guarded, stack):
    go = threading.Event()

    def slow(request):
        go.wait(SECONDS)
        return response("", fields=[("Remote-User", "slow")])

    of = stack.enter_context(Backend(slow))
    server = guarded(of=of)
    with server.connect() as c:
        c.ask("/x")
        wait_until(lambda: of.requests)
        server.tell(signal.SIGHUP)
        time.sleep(0.5)
        go.set()
        assert values(c.read("GET"), "Remote-User") == ["slow"]


SERVICE = """
#include <duda.h>

static duda_verdict verify(struct duda_ctx *d)
{
    if (!mk_str_eq(duda_header(d, "Cookie"), MK_STR("session=alice")))
        return 401;
    duda_header_set(d, "Remote-User", MK_STR("alice"));
    duda_header_set(d, "Remote-Groups", duda_header(d, "X-Forwarded-URI"));
    return 204;
}

static duda_verdict who(struct duda_ctx *d)
{
    return duda_printf(d, "%.*s %.*s", MK_STR_ARG(duda_header(d, "Remote-User")), MK_STR_ARG(duda_header(d, "Remote-Groups")));
}

DUDA_SERVICE(decider, DUDA_GET("/auth/verify", verify, "decides"), DUDA_GET("/who", who, "shows the user"));
"""


@pytest.mark.parametrize("isolated", [False, True], ids=["loaded", "isolated"])
def test_duda_service_decides_and_sees_the_user(monkey, site, tmp_path, isolated):
    built = services.build(tmp_path, "decider", SERVICE)
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    text = section(f"127.0.0.1:{port}", path="/auth/verify") + "[FORWARD_AUTH]\n    Location /auth/\n    URL off\n"
    more = {"plugins": ["forward-auth", "isolate"], "top": f"[ISOLATE]\n    Service {built}\n"} if isolated else {"plugins": ["forward-auth", built]}
    server = monkey(sections=text, listen=f"127.0.0.1:{port}", **more)
    forged = [("Remote-User", "root"), ("Remote-Groups", "root")]
    assert server.get("/who", fields=forged).status == 401
    assert server.get("/who", fields=[*ALICE, *forged]).text == "alice /who"


def wait_until(check):
    deadline = time.monotonic() + SECONDS
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# ---- Faults ----

def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return f"127.0.0.1:{s.getsockname()[1]}"


def test_dead_service_is_a_502(guarded, program):
    server = guarded(of=closed_port())
    assert server.get("/", fields=ALICE).status in (502, 503) and not program.requests
    server.allow("refused", "upstream")


@pytest.mark.parametrize("script", [
    lambda c: c.recv(10000) and c.close(),
    lambda c: c.recv(10000) and c.sendall(b"HTTP/1.1 200 OK\r\nRemote-User: al"),
    lambda c: c.recv(10000) and c.sendall(b"nonsense\r\n\r\n"),
    lambda c: c.recv(10000) and c.sendall(b"HTTP/1.1 200 OK\r\nRemote-User: a\0b\r\n\r\n"),
    lambda c: c.recv(10000) and c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
    lambda c: c.recv(10000) and c.sendall(b"HTTP/1.1 200 OK\r\nRemote-User: " + b"a" * 70_000 + b"\r\n\r\n"),
    lambda c: c.recv(10000) and c.sendall(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n"),
    lambda c: c.recv(10000) and c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
    lambda c: c.recv(10000) and c.sendall(b"HTTP/1.1 103 Early Hints\r\nRemote-User: alice\r\n\r\n"),
], ids=["close", "half", "nonsense", "nul", "lengths", "huge", "lines", "101", "1xx"])
def test_hostile_answer_is_a_502(guarded, stack, program, script):
    def closing(connection):
        with contextlib.suppress(OSError):
            script(connection)
            connection.shutdown(socket.SHUT_RDWR)

    of = stack.enter_context(Backend(script=closing))
    server = guarded(of=of)
    assert server.get("/", fields=ALICE).status == 502 and not program.requests
    server.allow(".*")


@pytest.mark.parametrize("piece", [b"", b"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n", b"HTTP/1.1 200 OK\r\n", None], ids=["silent", "1xx", "half", "drip"])
def test_slow_answer_is_a_504(guarded, stack, program, piece):
    stop = threading.Event()

    def slow(connection):
        connection.recv(10000)
        with contextlib.suppress(OSError):
            connection.sendall(piece if piece is not None else b"HTTP/1.1 200 OK\r\nX: ")
            while not stop.wait(0.05):
                connection.sendall(b"" if piece is not None and piece != b"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n" else piece or b"a")

    of = stack.enter_context(Backend(script=slow))
    server = guarded(keys="Timeout 300ms\n", of=of)
    begin = time.monotonic()
    assert server.get("/", fields=ALICE).status == 504
    assert 0.25 < time.monotonic() - begin < 3 and not program.requests
    stop.set()
    server.allow("did not answer within 300 ms: 504")


@pytest.mark.parametrize("body", ["small", "chunked", "long", "endless", "half"])
def test_body_of_an_answer_is_ignored(guarded, stack, body):
    def answer(_):
        head = b"HTTP/1.1 200 OK\r\nRemote-User: alice\r\n"
        if body == "small":
            return head + b"Content-Length: 4\r\n\r\nbody"
        if body == "chunked":
            return head + b"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"
        if body == "long":
            return head + b"Content-Length: 60000\r\n\r\n" + b"x" * 60_000
        if body == "half":
            return iter([head + b"Content-Length: 60000\r\n\r\n", b"x"])
        return iter([head + b"Content-Length: 100000000\r\n\r\n"] + [b"x" * 100_000] * 100)

    of = stack.enter_context(Backend(answer))
    server = guarded(of=of)
    for _ in range(5):
        assert values(server.get("/"), "Remote-User") == ["alice"]
    if body in ("small", "chunked"):
        assert of.connections == 1


def test_client_that_leaves_cancels_the_query(guarded, stack):
    gone = threading.Event()

    def wait_for_end(connection):
        connection.recv(10000)
        connection.settimeout(SECONDS)
        with contextlib.suppress(OSError):
            if not connection.recv(1):
                gone.set()

    of = stack.enter_context(Backend(script=wait_for_end))
    server = guarded(keys="Timeout 30s\n", of=of)
    c = server.connect()
    c.ask("/x")
    wait_until(lambda: of.connections)
    time.sleep(0.1)
    c.close()
    assert gone.wait(SECONDS)


def test_too_many_headers_reject_the_request(guarded, stack, program):
    of = stack.enter_context(Backend(lambda _: response("", fields=[("Remote-Groups", str(i)) for i in range(90)])))
    server = guarded(of=of, server="MaxHeaders 250")
    assert server.get("/", fields=[(f"X-{i}", "1") for i in range(200)]).status == 502 and not program.requests
    server.allow("cannot use the answer")


# ---- The cache ----

def test_permission_is_reused_for_equal_requests(guarded, service):
    server = guarded(keys="CacheTTL 30s\n")
    for _ in range(5):
        assert values(server.get("/x", fields=ALICE), "Remote-User") == ["alice"]
    assert len(service.requests) == 1
    for path, more in (("/y", []), ("/x?a", []), ("/x", [("Authorization", "Bearer a")]), ("/x", [("Cookie", "more=1")])):
        assert server.get(path, fields=[*ALICE, *more]).status == 200
    assert len(service.requests) == 5
    assert server.get("/x", method="POST", fields=ALICE, body=b"x").status == 200 and len(service.requests) == 6
    for host in ("other", "OTHER", "other."):
        assert server.get("/x", host=host, fields=ALICE).status == 200 and len(service.requests) == 7


def test_permission_per_host_applies_to_all_paths(guarded, service):
    server = guarded(keys="CacheTTL 30s\nCachePer host\nCacheHeaders X-Api-Key\n")
    for path in ("/x", "/y", "/z?a=b"):
        assert server.get(path, fields=ALICE).status == 200
    assert len(service.requests) == 1
    assert server.get("/x", fields=[*ALICE, ("X-Api-Key", "1")]).status == 200 and len(service.requests) == 2


def test_permission_expires(guarded, service):
    server = guarded(keys="CacheTTL 300ms\n")
    assert server.get("/x", fields=ALICE).status == 200 and server.get("/x", fields=ALICE).status == 200 and len(service.requests) == 1
    time.sleep(0.5)
    assert server.get("/x", fields=ALICE).status == 200 and len(service.requests) == 2


@pytest.mark.parametrize("answer", [response("", "401 a"), response("", "403 a"), response("", "302 a", [("Location", "/login")]),
                                    response("", fields=[("Set-Cookie", "a=b")]), response("", "500 a"),
                                    response("", fields=[("Remote-User", "a" * 5000)])])
def test_other_answers_are_not_reused(guarded, stack, answer):
    of = stack.enter_context(Backend(lambda _: answer))
    server = guarded(keys="CacheTTL 30s\n", of=of)
    for _ in range(3):
        server.get("/x", fields=ALICE)
    assert len(of.requests) == 3
    server.allow("answered with status")


def test_reload_forgets_permissions(guarded, service):
    server = guarded(keys="CacheTTL 60s\n")
    assert server.get("/x", fields=ALICE).status == 200 and server.get("/x", fields=ALICE).status == 200 and len(service.requests) == 1
    server.tell(signal.SIGHUP)
    wait_until(lambda: server.get("/x", fields=ALICE).status == 200 and len(service.requests) == 2)


def ask_at_once(server, n, **how):
    clients = [server.connect() for _ in range(n)]
    for c in clients:
        c.ask("/x", **how)
    replies = [c.read("GET") for c in clients]
    for c in clients:
        c.close()
    return replies


def slow_service(stack, answer):
    def slow(request):
        time.sleep(0.5)
        return answer(request)
    return stack.enter_context(Backend(slow))


def test_equal_requests_ask_once(guarded, stack):
    of = slow_service(stack, decide)
    server = guarded(keys="CacheTTL 30s\n", of=of)
    assert [r.status for r in ask_at_once(server, 10, fields=ALICE)] == [200] * 10 and len(of.requests) == 1


def test_cookies_and_rejections_are_never_shared(guarded, stack):
    numbers = iter(range(100))
    of = slow_service(stack, lambda _: response("", "302 a", [("Location", "/login"), ("Set-Cookie", f"state={next(numbers)}")]))
    server = guarded(keys="CacheTTL 30s\n", of=of)
    replies = ask_at_once(server, 5)
    assert [r.status for r in replies] == [302] * 5 and len({r["Set-Cookie"] for r in replies}) == 5


def test_query_outlives_the_client_that_started_it(guarded, stack):
    of = slow_service(stack, decide)
    server = guarded(keys="CacheTTL 30s\n", of=of)
    first, second = server.connect(), server.connect()
    first.ask("/x", fields=ALICE)
    wait_until(lambda: of.requests)
    second.ask("/x", fields=ALICE)
    time.sleep(0.1)
    first.close()
    assert second.read("GET").status == 200 and len(of.requests) == 1
    second.close()


def test_cache_is_bounded(guarded, service):
    server = guarded(keys="CacheTTL 60s\n")
    for first in range(0, 3000, 500):
        with server.connect() as c:
            for i in range(first, first + 500):
                assert c.get(f"/{i}", fields=ALICE).status == 200
            assert c.get(f"/{first + 499}", fields=ALICE).status == 200
    assert len(service.requests) == 3000


# ---- Mistakes ----

@pytest.mark.parametrize("keys, message", [
    ("URL http://127.0.0.1:1/", "Location"), ("Location /", "URL"), ("Location /*\nURL off", "not a pattern"),
    ("Location /a/../b\nURL off", "no path matches"), ("Location x\nURL off", "a path"), ("Location /\nURL 127.0.0.1:1", "expected `http://SERVER/PATH`"),
    ("Location /\nURL http://", "must not be empty"), ("Location /\nURL http://127.0.0.1:1/#a", "the path must begin"),
    ("Location /\nURL http://127.0.0.1:1/\nCopyHeaders Host", "request header `Host` cannot be set"),
    ("Location /\nURL http://127.0.0.1:1/\nCopyHeaders Remote_User", "cannot be set"),
    ("Location /\nURL http://127.0.0.1:1/\nUserHeader Content-Length", "cannot be set"),
    ("Location /\nURL http://127.0.0.1:1/\nCopyHeaders a:b", "is not the name of a header"),
    ("Location /\nURL http://127.0.0.1:1/\nLoginURL auth.example", "a URL"), ("Location /\nURL http://127.0.0.1:1/\nCachePer path", "CachePer"),
    ("Location /\nURL http://127.0.0.1:1/\nTimeout 5h", "Timeout"), ("Location /\nURL http://127.0.0.1:1/\nCashTTL 1s", "CacheTTL"),
    ("Location /\nURL off\n[FORWARD_AUTH]\nLocation /\nURL off", "duplicate section"),
])
def test_mistake_is_reported(run, site, tmp_path, keys, message):
    (tmp_path / "site").mkdir(exist_ok=True)
    (tmp_path / "monkey.conf").write_text("[PLUGINS]\n    Load forward-auth\n[SERVER]\n    Listen 127.0.0.1:0\n[HOST]\n    DocumentRoot site\n"
                                          "[FORWARD_AUTH]\n" + "".join(f"{'' if k[0] == '[' else '    '}{k}\n" for k in keys.splitlines()))
    result = run("-t", "-c", tmp_path / "monkey.conf")
    assert result.code == 3 and message in result.err and re.search(r"monkey.conf:\d+", result.err), result.err


@pytest.mark.parametrize("plugin, keys", [("forward-auth", "URL off"), ("auth", "Type None")])
def test_encoded_location_is_a_warning(run, tmp_path, plugin, keys):
    (tmp_path / "site").mkdir(exist_ok=True)
    section = plugin.upper().replace("-", "_")
    (tmp_path / "monkey.conf").write_text(f"[PLUGINS]\n    Load {plugin}\n[SERVER]\n    Listen 127.0.0.1:0\n[HOST]\n    DocumentRoot site\n"
                                          f"[{section}]\n    Location /a%20b\n    {keys}\n")
    result = run("-t", "-c", tmp_path / "monkey.conf")
    assert result.code == 0 and re.search(r"monkey.conf:8:\d+: warning: paths are compared after decoding", result.err), result.err
