# SPDX-License-Identifier: Apache-2.0
"""Rewriting together with plugins that protect paths: [AUTH] and [LIMITS] check the requested path and each path that rewriting
produces.
"""
import subprocess

import pytest

import users
from monkey import ROOT

SH = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\n"
FRONT = SH + 'echo "front $REQUEST_URI $QUERY_STRING $REMOTE_USER"\n'
ROUTES = "[ROUTES]\n    *.php cgi\n    /*    static\n"
CONTROLLER = ["Redirect 301 glob /index.php* /", "When !file", "Rewrite glob /* /index.php last"]


def section(name, *lines):
    return f"[{name}]\n" + "".join(f"    {line}\n" for line in lines)


@pytest.fixture
def ana(tmp_path):
    return users.add(tmp_path / "users", "ana", "secret", "-b", "bcrypt", "-r", "4")


@pytest.fixture
def start(monkey, site):
    """`start(rules, sections)` creates a front controller, /admin/there and a dot file."""
    site.add("index.php", FRONT, mode=0o755)
    site.add("admin/there", "there")
    site.add("a.txt", "a")
    site.add(".secret", "x")

    def run(rules, sections="", **how):
        return monkey(plugins=["rewrite", "auth", "limits", "cgi", "security"],
                      sections=section("REWRITE", *rules) + ROUTES + sections, **how)

    return run


def auth(location, *more):
    return section("AUTH", f"Location {location}", "Users users", *more)


def test_rewrite_to_front_controller_does_not_bypass_auth(start, ana):
    server = start(CONTROLLER, auth("/admin/"))
    for target in ("/admin/x", "/admin/there", "/admin/", "/admin", "/%61dmin/x", "//admin/./x", "/b/../admin/x"):
        for method in ("GET", "POST", "HEAD"):
            body = b"x" if method == "POST" else b""
            assert server.get(target, method=method, body=body).status == 401, (method, target)
    assert server.get("/b").text == "front /b  \n"
    reply = users.get(server, "ana", "secret", target="/admin/x?q=1")
    assert reply.text == "front /admin/x?q=1 q=1 ana\n"  # the front controller also receives the user name
    assert users.get(server, "ana", "wrong", target="/admin/x").status == 401


def test_rewrite_target_requires_its_password(start, ana):
    server = start(["Rewrite prefix /open /middle", "Rewrite prefix /middle /a.txt !query last"],
                   auth("/a.txt"))
    assert server.get("/open").status == 401
    assert users.get(server, "ana", "secret", target="/open").text == "a"


def test_rewrite_intermediate_path_requires_its_password(start, ana):
    server = start(["Rewrite glob /one /two", "Rewrite glob /two /a.txt"], auth("/two"))
    assert server.get("/one").status == 401
    assert users.get(server, "ana", "secret", target="/one").text == "a"
    assert server.get("/a.txt").text == "a"


@pytest.mark.parametrize("kind", ["Basic", "Digest"])
def test_rewrite_needs_one_password_for_all_paths(start, tmp_path, kind):
    """A Digest nonce count is valid for one check: a second check of the same request would report the nonce as stale."""
    if kind == "Digest":
        users.add(tmp_path / "users", "ana", "secret", "--digest", "Restricted")
    else:
        users.add(tmp_path / "users", "ana", "secret", "-b", "bcrypt", "-r", "4")
    server = start(["Rewrite glob /in/x /in/y", "Rewrite glob /in/y /a.txt"],
                   auth("/in/", f"Type {kind}") + auth("/a.txt", f"Type {kind}"))
    done = subprocess.run(["curl", "-s", "--anyauth", "-u", "ana:secret", server.url + "/in/x"], capture_output=True,
                          text=True, timeout=60)
    assert done.stdout == "a"


def test_rewrite_target_may_require_a_different_user(start, tmp_path, ana):
    users.add(ana, "bob", "hidden", "-b", "bcrypt", "-r", "4")
    server = start(["Rewrite glob /in/x /a.txt"], auth("/in/") + auth("/a.txt", "Require user bob"))
    assert users.get(server, "ana", "secret", target="/in/x").status == 403
    assert users.get(server, "bob", "hidden", target="/in/x").text == "a"


def test_redirect_precedes_auth(start, ana):
    """If authentication came first, browsers would send passwords unencrypted where a rule redirects to TLS."""
    server = start(["When scheme http", "Redirect 308 prefix /admin https://$host/admin"], auth("/admin/"))
    assert server.get("/admin/x").status == 308


def test_redirect_does_not_reveal_protected_files(start, ana):
    server = start(["When file", "Redirect 302 prefix /admin /there", "When !file", "Redirect 302 glob /*x /gone"],
                   auth("/admin/"))
    assert server.get("/admin/there").status == server.get("/admin/no").status == server.get("/admin/x").status == 401
    assert users.get(server, "ana", "secret", target="/admin/there").status == 302
    assert users.get(server, "ana", "secret", target="/admin/no").status == 404
    assert server.get("/x").status == 302


def test_rewrite_file_condition_ignores_dot_files(start, site):
    site.add(".well-known/known", "known")
    server = start(CONTROLLER)
    assert server.get("/.secret").text == "front /.secret  \n"
    assert server.get("/.nothing").text == "front /.nothing  \n"
    assert server.get("/.well-known/known").text == "known"


def test_rewrite_file_condition_sees_dot_files_if_enabled(start):
    assert start(CONTROLLER, host="DotFiles on").get("/.secret").text == "x"


def test_rewrite_to_front_controller_does_not_bypass_limits(start):
    server = start(CONTROLLER, section("LIMITS", "Requests /login 2/h"))
    with server.connect() as c:
        assert [c.get("/login").status for _ in range(4)] == [200, 200, 429, 429]
        assert c.get("/other").status == 200


def test_rewrite_counts_request_once_in_limits(start):
    server = start(["Rewrite glob /x /y", "Rewrite glob /y /a.txt"], section("LIMITS", "Requests 4/h"))
    with server.connect() as c:
        assert [c.get("/x").status for _ in range(6)] == [200] * 4 + [429] * 2


def test_rewrite_intermediate_path_is_limited(start):
    server = start(["Rewrite glob /x /y", "Rewrite glob /y /a.txt"], section("LIMITS", "Requests /y 1/h"))
    assert [server.get("/x").status for _ in range(2)] == [200, 429]
    assert [server.get("/a.txt").status for _ in range(3)] == [200] * 3


def test_rewrite_exempt_path_does_not_exempt_target(start):
    server = start(["Rewrite glob /free /a.txt"], section("LIMITS", "Requests /a.txt 1/h", "Except /free"))
    assert [server.get("/free").status for _ in range(2)] == [200, 429]


def test_bandwidth_limit_applies_to_requested_path(start, run):
    server = start(["Rewrite glob /slow /a.txt"], section("LIMITS", "Bandwidth /slow 100K burst 1K"))
    rule = "Bandwidth /slow 100K burst 1K"
    assert rule in run("-c", server.config, "explain", "GET", "http://localhost/slow").out
    assert rule not in run("-c", server.config, "explain", "GET", "http://localhost/a.txt").out


def test_security_rules_apply_to_both_paths(start):
    server = start(CONTROLLER, section("SECURITY", "Deny /admin/*"))
    assert server.get("/admin/x").status == 403
    assert server.get("/b").status == 200


def test_rewrite_front_controller_is_not_reachable_by_its_own_name(start):
    server = start(CONTROLLER)
    for target in ("/index.php", "/index.php/admin/x", "/index.php%2fadmin", "//index.php"):
        assert server.get(target).status in (301, 404), target


def test_rewrite_path_with_encoded_slash_may_stay_the_same(start):
    server = start(["Rewrite glob /e* /e$1"])
    assert server.get("/e%2Fx").status == 404


def test_rewrite_readme_example_is_this_one():
    text = (ROOT / "plugins/rewrite/README.md").read_text()
    for rule in CONTROLLER:
        assert " ".join(rule.split()) in " ".join(text.split()), rule
