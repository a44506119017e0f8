# SPDX-License-Identifier: Apache-2.0
"""Rewriting beside the plugins that guard paths: [AUTH] and [LIMITS] judge the path that was asked for and every
path that it becomes."""
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
    """`start(rules, sections)`: a front controller, /admin/there and a dot file."""
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


def test_a_front_controller_does_not_lead_around_a_password(start, ana):
    server = start(CONTROLLER, auth("/admin/"))
    for target in ("/admin/x", "/admin/there", "/admin/", "/admin", "/%61dmin/x", "//admin/./x", "/b/../admin/x"):
        for method in ("GET", "POST", "HEAD"):
            body = b"x" if method == "POST" else b""
            assert server.get(target, method=method, body=body).status == 401, (method, target)
    assert server.get("/b").text == "front /b  \n"
    reply = users.get(server, "ana", "secret", target="/admin/x?q=1")
    assert reply.text == "front /admin/x?q=1 q=1 ana\n"  # the front controller knows the user, too
    assert users.get(server, "ana", "wrong", target="/admin/x").status == 401


def test_the_path_that_it_becomes_asks_for_a_password_as_well(start, ana):
    server = start(["Rewrite prefix /open /middle", "Rewrite prefix /middle /a.txt !query last"],
                   auth("/a.txt"))
    assert server.get("/open").status == 401
    assert users.get(server, "ana", "secret", target="/open").text == "a"


def test_each_path_in_between_asks_for_a_password(start, ana):
    server = start(["Rewrite glob /one /two", "Rewrite glob /two /a.txt"], auth("/two"))
    assert server.get("/one").status == 401
    assert users.get(server, "ana", "secret", target="/one").text == "a"
    assert server.get("/a.txt").text == "a"


@pytest.mark.parametrize("kind", ["Basic", "Digest"])
def test_one_password_does_for_all_paths_of_a_request(start, tmp_path, kind):
    """The count of a Digest is good for one check: a second one would call it stale."""
    if kind == "Digest":
        users.add(tmp_path / "users", "ana", "secret", "--digest", "Restricted")
    else:
        users.add(tmp_path / "users", "ana", "secret", "-b", "bcrypt", "-r", "4")
    server = start(["Rewrite glob /in/x /in/y", "Rewrite glob /in/y /a.txt"],
                   auth("/in/", f"Type {kind}") + auth("/a.txt", f"Type {kind}"))
    done = subprocess.run(["curl", "-s", "--anyauth", "-u", "ana:secret", server.url + "/in/x"], capture_output=True,
                          text=True, timeout=60)
    assert done.stdout == "a"


def test_users_of_one_path_need_not_be_let_in_at_the_next(start, tmp_path, ana):
    users.add(ana, "bob", "hidden", "-b", "bcrypt", "-r", "4")
    server = start(["Rewrite glob /in/x /a.txt"], auth("/in/") + auth("/a.txt", "Require user bob"))
    assert users.get(server, "ana", "secret", target="/in/x").status == 403
    assert users.get(server, "bob", "hidden", target="/in/x").text == "a"


def test_a_redirect_comes_before_the_password(start, ana):
    """So that a password is not asked for in plain text where a rule leads to TLS."""
    server = start(["When scheme http", "Redirect 308 prefix /admin https://$host/admin"], auth("/admin/"))
    assert server.get("/admin/x").status == 308


def test_a_redirect_does_not_tell_which_protected_files_exist(start, ana):
    server = start(["When file", "Redirect 302 prefix /admin /there", "When !file", "Redirect 302 glob /*x /gone"],
                   auth("/admin/"))
    assert server.get("/admin/there").status == server.get("/admin/no").status == server.get("/admin/x").status == 401
    assert users.get(server, "ana", "secret", target="/admin/there").status == 302
    assert users.get(server, "ana", "secret", target="/admin/no").status == 404
    assert server.get("/x").status == 302


def test_dot_files_are_no_files_for_a_rule(start, site):
    site.add(".well-known/known", "known")
    server = start(CONTROLLER)
    assert server.get("/.secret").text == "front /.secret  \n"
    assert server.get("/.nothing").text == "front /.nothing  \n"
    assert server.get("/.well-known/known").text == "known"


def test_dot_files_that_are_shown_are_files(start):
    assert start(CONTROLLER, host="DotFiles on").get("/.secret").text == "x"


def test_a_front_controller_does_not_lead_around_a_limit(start):
    server = start(CONTROLLER, section("LIMITS", "Requests /login 2/h"))
    with server.connect() as c:
        assert [c.get("/login").status for _ in range(4)] == [200, 200, 429, 429]
        assert c.get("/other").status == 200


def test_a_rule_counts_a_request_once(start):
    server = start(["Rewrite glob /x /y", "Rewrite glob /y /a.txt"], section("LIMITS", "Requests 4/h"))
    with server.connect() as c:
        assert [c.get("/x").status for _ in range(6)] == [200] * 4 + [429] * 2


def test_each_path_in_between_is_limited(start):
    server = start(["Rewrite glob /x /y", "Rewrite glob /y /a.txt"], section("LIMITS", "Requests /y 1/h"))
    assert [server.get("/x").status for _ in range(2)] == [200, 429]
    assert [server.get("/a.txt").status for _ in range(3)] == [200] * 3


def test_an_exempt_path_does_not_open_another(start):
    server = start(["Rewrite glob /free /a.txt"], section("LIMITS", "Requests /a.txt 1/h", "Except /free"))
    assert [server.get("/free").status for _ in range(2)] == [200, 429]


def test_bandwidth_is_limited_for_the_path_that_was_asked_for(start, run):
    server = start(["Rewrite glob /slow /a.txt"], section("LIMITS", "Bandwidth /slow 100K burst 1K"))
    rule = "Bandwidth /slow 100K burst 1K"
    assert rule in run("-c", server.config, "explain", "GET", "http://localhost/slow").out
    assert rule not in run("-c", server.config, "explain", "GET", "http://localhost/a.txt").out


def test_security_judges_both_paths(start):
    server = start(CONTROLLER, section("SECURITY", "Deny /admin/*"))
    assert server.get("/admin/x").status == 403
    assert server.get("/b").status == 200


def test_the_front_controller_is_not_asked_by_its_own_name(start):
    server = start(CONTROLLER)
    for target in ("/index.php", "/index.php/admin/x", "/index.php%2fadmin", "//index.php"):
        assert server.get(target).status in (301, 404), target


def test_a_path_with_an_encoded_slash_may_become_itself(start):
    server = start(["Rewrite glob /e* /e$1"])
    assert server.get("/e%2Fx").status == 404


def test_the_example_of_the_readme_is_this_one():
    text = (ROOT / "plugins/rewrite/README.md").read_text()
    for rule in CONTROLLER:
        assert " ".join(rule.split()) in " ".join(text.split()), rule
