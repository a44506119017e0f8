# SPDX-License-Identifier: Apache-2.0
"""The package oidc with several providers. Hostile providers: test_samples_oidc.py."""
import re
from urllib.parse import parse_qs, urlsplit

import pytest

import services
from oidc_provider import Provider, RsaKey
from oidc_service import Browser

pytestmark = pytest.mark.skipif(not services.has("oidc"), reason="this build has no package oidc")

SOURCE = r"""
#define DUDA_USE "duda-oidc"
#include <duda.h>
#include <duda/oidc.h>
#include <errno.h>

static int on_login(struct duda_ctx *d, mk_str user, mk_str claims)
{
    (void)user;
    return strstr(claims.p, "\"banned\"") ? duda_problem(d, 403, "banned") : duda_session_set(d, "note", MK_STR("kept"));
}

static int show(struct duda_ctx *d)
{
    mk_str user, note;
    int e = duda_session_user(d, &user);
    (void)!duda_session_get(d, "note", &note);
    return e && e != -ENOENT ? e : duda_printf(d, "%s %s\n", user.p ? user.p : "-", note.p ? note.p : "-");
}

static const struct duda_oidc_login a = DUDA_OIDC_LOGIN(.provider = "a", .on_login = on_login, .home = "/show"), b = DUDA_OIDC_LOGIN(.provider = "b"), none = DUDA_OIDC_LOGIN(.provider = "none");
DUDA_SERVICE(people, DUDA_GET("/show", show), DUDA_GET("/a/in", duda_oidc_log_in, "", .data = &a), DUDA_GET("/a/back", duda_oidc_callback, "", .data = &a),
             DUDA_POST("/a/out", duda_oidc_log_out, "", .data = &a), DUDA_GET("/b/in", duda_oidc_log_in, "", .data = &b),
             DUDA_GET("/b/back", duda_oidc_callback, "", .data = &b), DUDA_GET("/none", duda_oidc_log_in, "", .data = &none));
"""


@pytest.fixture(scope="module")
def key():
    return RsaKey("first")


@pytest.fixture
def providers(key):
    with Provider("shop", "secret-a", "http://x.example/a/back", key=key) as a, Provider("shop", "secret-b", "http://x.example/b/back", key=key) as b:
        yield {"a": a, "b": b}


@pytest.fixture(params=["a section for each host", "one section"])
def server(request, monkey, tmp_path, providers, monkeypatch):
    is_one = request.param == "one section"
    hosts = " ".join(p.address for p in providers.values())
    top = f"[HTTP_CLIENT]\n    Name web\n    AllowHosts {hosts}\n    AllowPrivate 127.0.0.1\n" if is_one else ""
    for name, p in providers.items():
        (tmp_path / name).write_text(p.secret)
        top += f"[OIDC]\n    Name {name}\n    Issuer {p.issuer}\n    Client shop\n    Secret file:{tmp_path / name}\n    RedirectUrl {p.callback}\n"
        top += "    HttpClient web\n" if is_one else f"[HTTP_CLIENT]\n    Name {p.address}\n    Server {p.address}\n"
    server = monkey(plugins=["upstream", "duda-http", "duda-oidc", services.build(tmp_path, "people", SOURCE, packages=["oidc"])], top=top, workers=2)
    server.allow("OpenID Connect: ", "duda_oidc_log_in")
    return server


def test_oidc_users_of_different_providers_are_different(server, providers):
    browser = Browser(server)
    reply = browser.get(browser.begin("a", providers["a"]))
    assert (reply.status, reply["Location"]) == (303, "/show")
    assert browser.get("/show").text == "a:user-1 kept\n"
    reply = browser.get(browser.begin("b", providers["b"]))
    assert (reply.status, reply["Location"]) == (303, "/")
    assert browser.get("/show").text == "b:user-1 -\n", "the session of another user starts empty"


def test_oidc_response_of_one_provider_is_invalid_for_the_other(server, providers):
    browser = Browser(server)
    answers = {name: urlsplit(browser.begin(name, p)).query for name, p in providers.items()}
    assert browser.get(f"/b/back?{answers['a']}").status == 403
    assert browser.get(f"/a/back?{re.sub('&iss=[^&]*', '', answers['b'])}").status == 403
    assert browser.get("/show").text == "- -\n"
    assert browser.get(f"/a/back?{answers['a']}").status == 403, "a wrong answer ends the attempt"


@pytest.mark.parametrize("path, location", [("/deep/page%3Fx=1", "/deep/page?x=1"), ("https://evil.example", None), ("//evil.example", None),
                                            ("/%5Cevil.example", None), ("x" * 600, "/show"), ("", "/show")])
def test_oidc_returns_to_the_requested_page_of_this_host(server, providers, path, location):
    browser = Browser(server)
    reply = browser.get(browser.begin("a", providers["a"], f"?next={path}"))
    assert (reply.status, reply["Location"] if location else None) == ((303, location) if location else (400, None))


def test_oidc_login_that_the_service_rejects_leaves_no_session(server, providers):
    providers["a"].claims = {"group": "banned"}
    browser = Browser(server)
    assert browser.get(browser.begin("a", providers["a"])).status == 403
    assert browser.get("/show").text == "- -\n"


def test_oidc_login_prevents_session_fixation_and_logout_goes_to_the_provider(server, providers):
    browser, attacker = Browser(server), Browser(server)
    target = browser.begin("a", providers["a"])
    attacker.cookies = dict(browser.cookies)
    assert browser.get(target).status == 303
    assert attacker.get("/show").text == "- -\n"
    reply = browser.get("/a/out", "POST")
    assert reply.status == 303 and parse_qs(urlsplit(reply["Location"]).query) == {"client_id": ["shop"]}
    assert browser.get("/show").text == "- -\n"
    assert browser.get("/none").status == 503


def test_oidc_logout_works_without_the_provider(server, providers):
    browser = Browser(server)
    assert browser.get(browser.begin("a", providers["a"])).status == 303
    for p in providers.values():
        p.answers["/.well-known/openid-configuration"] = (500, {})
    locations = set()
    for _ in range(6):  # some workers know the endpoints, others do not
        reply = browser.get("/a/out", "POST")
        assert (reply.status, reply.text) == (303, "")
        locations.add(urlsplit(reply["Location"]).path)
    assert locations <= {"/show", "/end"} and browser.get("/show").text == "- -\n"


@pytest.mark.parametrize("change, message", [(("Issuer http", "Issuer ftp"), "begins with https"), (("Client x", "Scope profile\n    Client x"), "`openid` is missing"),
                                             (("Client x\n", "\n"), "must have `Client`"), (("RedirectUrl http://x/b", ""), "must have `RedirectUrl`")])
def test_oidc_section_with_mistakes_is_rejected(monkey, change, message):
    text = "[OIDC]\n    Issuer http://x\n    Client x\n    RedirectUrl http://x/b\n".replace(*change)
    failed = monkey(plugins=["upstream", "duda-http", "duda-oidc"], top=text, expect_start=False)
    failed.exit_code = 3
    failed.wait()
    assert message in failed.log


@pytest.mark.parametrize("section", ["[OIDC]\n    Issuer http://x\n    Client x\n    RedirectUrl http://x/b\n", "[JWT]\n    Audience x\n    Issuer http://x\n    JwksUrl http://x/k\n"],
                         ids=["oidc", "jwt"])
@pytest.mark.parametrize("clients, name, errors, meant", [
    (["Name web", "Name other"], "web", [], None), (["Name web", "Name other"], "wbe", ["HttpClient"], "web"),
    (["Name web"], "entirely-different", ["HttpClient"], None), ([], "web", ["HttpClient"], None), (["Name web\n    AllowPrivate x"], "web", ["AllowPrivate"], None)])
@pytest.mark.parametrize("is_last", [True, False])
def test_http_client_of_a_section_must_exist(monkey, section, clients, name, errors, meant, is_last):
    """The order of the sections does not matter, and an error in an [HTTP_CLIENT] causes no second one."""
    parts = ["".join(f"[HTTP_CLIENT]\n    {each}\n    AllowHosts x\n" for each in clients), f"{section}    HttpClient {name}\n"]
    plugin = "duda-oidc" if "OIDC" in section else "duda-jwt"
    server = monkey(plugins=["upstream", plugin], top="".join(parts if is_last else parts[::-1]), expect_start=not errors)
    if errors:
        server.exit_code = 3
        server.wait()
    assert [("no [HTTP_CLIENT] has the Name" in server.log), ("did you mean" in server.log)] == [errors == ["HttpClient"], meant is not None]
    assert not meant or f"did you mean `{meant}`?" in server.log


OIDC = "[OIDC]\n    Issuer http://login.example\n    Client x\n    RedirectUrl http://x/b\n"
JWT = "[JWT]\n    Audience x\n    Issuer http://x\n    JwksUrl http://login.example/k\n"


@pytest.mark.parametrize("section, key", [(OIDC, "Issuer"), (JWT, "JwksUrl")], ids=["oidc", "jwt"])
@pytest.mark.parametrize("name, meant", [("login.example", None), ("login.exampel", "login.exampel"), ("web", None)])
def test_http_client_of_a_host_must_exist(monkey, section, key, name, meant):
    """Without HttpClient, the host of the URL names the section."""
    client = f"[HTTP_CLIENT]\n    Name {name}\n    AllowHosts x\n"
    server = monkey(plugins=["upstream", "duda-" + section[1:5].strip("]").lower()], top=client + section, expect_start=name == "login.example")
    if name == "login.example":
        return
    server.exit_code = 3
    server.wait()
    line = server.log.split("no [HTTP_CLIENT] has the Name `login.example`")[1].splitlines()[1]
    assert line.strip().startswith(key), server.log
    assert ("did you mean" in server.log) == bool(meant) and (not meant or f"did you mean `{meant}`?" in server.log)


@pytest.mark.parametrize("store, meant", [("memory", None), ("tokens", None), ("token", "tokens"), ("nothing-of-this-name", None)])
@pytest.mark.parametrize("is_last", [True, False])
def test_token_store_must_exist(monkey, tmp_path, store, meant, is_last):
    parts = [f"[KV]\n    Name tokens\n    Folder {tmp_path}/kv\n", OIDC + f"    TokenStore {store}\n[HTTP_CLIENT]\n    Name login.example\n    AllowHosts x\n"]
    exists = store in ("memory", "tokens")
    server = monkey(plugins=["upstream", *(["duda-kv", "duda-oidc"] if is_last else ["duda-oidc", "duda-kv"])], top="".join(parts), expect_start=exists)
    if exists:
        return
    server.exit_code = 3
    server.wait()
    assert server.log.count(f"no [KV] or [REDIS] has the Name `{store}`") == 1
    assert f"TokenStore {store}" in server.log and ("did you mean" in server.log) == bool(meant)
