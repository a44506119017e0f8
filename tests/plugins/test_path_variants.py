# SPDX-License-Identifier: Apache-2.0
"""Ambiguous paths: a backend that parses a path differently from the server must not bypass a rule of the server."""
import json
import shutil

import pytest

import php_fpm
from backend import Backend
from cgi_scripts import ENV, environment
from monkey import PROTOCOLS
from scgi_server import Program
from users import add, get

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)

# Spellings of /admin/secret for programs that decode slashes, strip path parameters, trim names, decode twice, accept overlong
# UTF-8, or parse the target as a URL reference.
NAMES = ["/admin%2fsecret", "/admin%2Fsecret", "/%2fadmin/secret", "/%2Fadmin%2Fsecret", "/admin;x/secret", "/admin;/secret",
         "/admin%3Bx=1/secret", "/;x/admin/secret", "/x/..;/admin/secret", "/x/%2e%2e;/admin/secret", "/admin%5csecret",
         "/admin\\secret", "/x/..%5Cadmin/secret", "/admin%20/secret", "/%20admin/secret", "/admin./secret", "/admin%09/secret",
         "/admin%0a/secret", "/admin.%20/secret", "/%2561dmin/secret", "/admin%252Fsecret", "/admin%253bx/secret",
         "/x/%252e%252e/admin/secret", "/admin%c0%afsecret", "/admin%a0/secret", "/admin%c2%a0/secret", "/%e3%80%80admin/secret", "/x/%c0%ae%c0%ae/admin/secret", "/%2Fhost/admin/secret",
         "/%5c%5chost/admin/secret", "/admin%3f", "/admin%23", "/admin%2500", "/admin;x%2fy/secret", "/admin%2f;x/secret",
         "/admin%f0%80%80%afsecret", "/admin%25c0%25afsecret", "/admin%25u002fsecret", "/ad%09min/secret", "/ad%0d%0amin/secret",
         "/admin::$DATA/secret", "/admin:$I30:$INDEX_ALLOCATION/secret", "/(S(x))/admin/secret", "/x%3f/..%20/admin/secret",
         "/x%2500/%252e%252e/admin/secret", "/x%253f/..%2520/admin/secret"]
ORDINARY = ["/", "/x/y", "/x%2Fy", "/@scope%2fpackage", "/x;v=1/y", "/x%20y./z", "/x%3Fy", "/100%25", "/caf%C3%A9", "/administer",
            "//x//y", "/a%5Cb", "/x/adm%2Fin"]


@pytest.fixture
def backend():
    with Backend() as each:
        yield each


@pytest.fixture
def program():
    with Program() as each:
        yield each


def lines(*routes):
    return "[ROUTES]\n" + "".join(f"    {each}\n" for each in routes)


# ---- Routes ----

@every_protocol
def test_ambiguous_path_to_backend_is_refused(monkey, backend):
    server = monkey(plugins=["proxy"], sections=lines("/admin/* status 403", f"/* proxy http://{backend.address}"))
    for target in NAMES:
        assert server.get(target).status in (400, 403), target
    assert not backend.requests
    for target in ORDINARY:
        assert server.get(target).status == 200, target


def test_ambiguous_path_passes_with_paths_raw(monkey, backend):
    server = monkey(plugins=["proxy"], sections=lines("/admin/* status 403", f"/* proxy http://{backend.address} paths=raw"))
    for target in ("/admin%2Fsecret", "/admin;x/secret", "//x/y", "/%2561dmin/secret"):
        assert json.loads(server.get(target).text)["target"] == target
    assert server.get("/admin/secret").status == 403


def test_ambiguous_target_never_begins_with_two_slashes(monkey, backend):
    """`new URL(target, base)` interprets the text after two slashes as a host, and the rest as the path."""
    server = monkey(plugins=["proxy"], sections=lines("/admin/* status 403", f"/* proxy http://{backend.address}"))
    for sent, got in [("//x/admin/secret", "/x/admin/secret"), ("///x//y?//z", "/x//y?//z"), ("//", "/"), ("//?x", "/?x")]:
        assert json.loads(server.get(sent).text)["target"] == got


def test_ambiguous_path_after_route_prefix_begins_with_one_slash(monkey, backend):
    server = monkey(plugins=["proxy"], sections=lines("/app/admin/* status 403", f"/app/* proxy http://{backend.address}/"))
    for sent, got in [("/app///x/admin/secret", "/x/admin/secret"), ("/app//x", "/x"), ("/app/x%2Fy", "/x%2Fy"), ("/app/", "/")]:
        assert json.loads(server.get(sent).text)["target"] == got
    for target in ("/app/%2Fx/admin/secret", "/app/%5Cx/admin/secret", "/app/%2fadmin/secret"):
        assert server.get(target).status == 400, target
    assert len(backend.requests) == 4


@pytest.mark.parametrize("route", ["/* proxy http://{}/app/", "/app/* proxy http://{}/app/", "/* proxy http://{}", "/app/* scgi {}"])
def test_ambiguous_dot_segments_never_leave_the_folder(monkey, backend, program, route):
    """A parser that does not recognize the dot segments finds all of these paths inside the folder, and they match the route."""
    gateway = route.split()[1]
    server = monkey(plugins=[gateway], sections=lines(route.format(backend.address if gateway == "proxy" else program.address)))
    for dots in ("..;/", "..%3bx/", "..%20/", "..%09/", "%252e%252e/", "..%252f", "..%255c", "%c0%ae%c0%ae/", "%25c0%25ae./", "..%3f/",
                 "..%2500/", ".%0a./", "..%5c", "..::$DATA/"):
        for path in (f"/app/{dots}app/secret", f"/app/x/{dots}{dots}secret"):
            assert server.get(path).status == 400, path
    assert not backend.requests and not program.requests


def test_ambiguous_decoded_slash_never_becomes_a_host(monkey, backend):
    server = monkey(plugins=["proxy"], sections=lines("/app/admin/* status 403", f"/app* proxy http://{backend.address}/"))
    for slash in ("%2F", "%2f", "%252f", "%5c", "%255C", "%09%2f", "%c0%af", "%0a%5c"):
        for target in (f"/app/{slash}x/admin/secret", f"/%61pp/{slash}x/admin/secret", f"/app{slash}x/admin/secret"):
            assert server.get(target).status == 400, target
    assert not backend.requests
    assert json.loads(server.get("/%61pp//x/admin/secret").text)["target"] == "/x/admin/secret"
    assert json.loads(server.get("/app/x%252fy").text)["target"] == "/x%252fy"


@pytest.mark.parametrize("guard", ["/admin/*  redirect 302 https://login.example/", "/admin/*  static", "~ ^/admin/  status 410",
                                   "/admin/secret  status 403", "*/secret  status 403"])
def test_ambiguous_path_is_refused_for_every_kind_of_guard(monkey, backend, guard):
    server = monkey(plugins=["proxy"], sections=lines(guard, f"/* proxy http://{backend.address}"))
    for target in ("/admin%2fsecret", "/admin%252fsecret", "/x%2f%252e%252e%252fadmin%252fsecret"):
        assert server.get(target).status == 400, target
    assert not backend.requests


def test_ambiguous_path_does_not_match_extension_route(monkey, backend):
    server = monkey(plugins=["proxy"], sections=lines(f"*.php proxy http://{backend.address}", "/* status 403"))
    for target in ("/admin/;x.php", "/admin/%3f.php", "/admin/%23x.php", "/admin%2500.php", "/admin;.php"):
        assert server.get(target).status == 400, target
    assert not backend.requests
    assert server.get("/a.php").status == 200


def test_ambiguous_path_may_pass_after_static_declines(monkey, site, backend):
    site.add("index.html", "home")
    server = monkey(plugins=["proxy"], sections=lines("/admin/* status 403", "/* static", f"/* proxy http://{backend.address}"))
    assert server.get("/x%2Fy").status == 200
    assert server.get("/admin%2Fy").status == 400
    assert server.get("/index.html").text == "home"


def test_ambiguous_path_that_is_too_long_is_refused(monkey, backend):
    server = monkey(plugins=["proxy"], sections=lines("/admin/* status 403", f"/* proxy http://{backend.address}"))
    assert server.get("/" + "x" * 4000).status == 200
    assert server.get("/;" + "x" * 4000).status == 414
    assert server.get("/" + "x" * 2000 + ";y").status == 200


def test_ambiguous_path_is_explained(run, monkey, backend, site, tmp_path):
    (tmp_path / "monkey.conf").write_text("[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load proxy\n[HOST]\n    DocumentRoot site\n"
                                          + lines("/admin/* status 403", f"/* proxy http://{backend.address}"))
    done = run("-c", "monkey.conf", "explain", "GET", "/admin;x/secret")
    assert "/admin;x/secret may be interpreted as /admin/secret, which leads to another route: gateways respond with 400" in done.out


# ---- Every gateway ----

def test_ambiguous_path_to_scgi_is_refused(monkey, program):
    server = monkey(plugins=["scgi"], sections=lines("/admin/* status 403", f"/* scgi {program.address}"))
    for target in NAMES:
        assert server.get(target).status in (400, 403), target
    assert not program.requests
    for target in ORDINARY:
        assert server.get(target).status == 200, target
    server = monkey(plugins=["scgi"], sections=lines("/admin/* status 403", f"/* scgi {program.address} paths=raw"))
    assert server.get("/admin;x/secret").status == 200


def test_ambiguous_path_to_cgi_is_refused(monkey, site):
    site.add("app", ENV, mode=0o755)
    routes = lines("/app/admin/* status 403", "/app/* cgi")
    server = monkey(plugins=["cgi"], sections=routes)
    for target in NAMES:
        if "host" not in target:
            assert server.get(f"/app{target}").status in (400, 403), target
    got = environment(server.get("/app/x%2Fy?z"))
    assert (got["SCRIPT_NAME"], got["PATH_INFO"], got["REQUEST_URI"]) == ("/app", "/x%2Fy", "/app/x%2Fy?z")
    server = monkey(plugins=["cgi"], sections=routes, top="[CGI]\n    Paths raw\n")
    assert environment(server.get("/app/admin;x/secret"))["PATH_INFO"] == "/admin;x/secret"


@pytest.mark.skipif(not php_fpm.PROGRAM, reason="there is no php-fpm")
def test_ambiguous_path_to_fastcgi_front_controller_is_refused(monkey, site, tmp_path):
    site.add("index.php", "<?php echo $_SERVER['REQUEST_URI'], ' ', $_SERVER['PATH_INFO'] ?? '';")
    with php_fpm.Fpm(tmp_path) as fpm:
        server = monkey(plugins=["fastcgi"], host="Fallback index.php", sections=lines(
            "/admin/* status 403", f"*.php fastcgi {fpm.address}", f"*.php/* fastcgi {fpm.address}", "/* static"))
        assert server.get("/api/projects/group%2Fname?x").text == "/api/projects/group%2Fname?x "
        assert server.get("/@scope%2fpkg", "PUT").text == "/@scope%2fpkg "
        assert server.get("/index.php/a%2Fb").text == "/index.php/a%2Fb /a%2Fb"
        assert server.get("/index.php%2Fb").status == 400, "a backend may parse it as the script"
        for target in NAMES:
            assert server.get(target).status in (400, 403), target
        for sent, got in [("/admin/../x", "/x "), ("/admin/y/%2e%2e/../x?y", "/x?y "), ("//admin/..//x", "/x "), ("/x\\y", "/x%5Cy ")]:
            assert server.get(sent).text == got, "a controller need not normalize anything"


# ---- Fallbacks ----

@every_protocol
def test_encoded_slash_gets_fallback_page(monkey, site):
    site.add("index.html", "page")
    site.add("a/b", "file")
    server = monkey(host="Fallback index.html")
    for target in ("/group%2Fname", "/x/@scope%2fpkg", "/a%2Fb"):
        assert server.get(target).text == "page", target
    assert server.get("/x%2Fy.js").status == 404
    assert server.get("/.git%2Fconfig").status == 403
    assert server.get("/a/b").text == "file"


def test_encoded_slash_never_matches_a_file(monkey, site):
    site.add("a/b", "file")
    site.add("x%2Fy", "odd")
    server = monkey()
    assert server.get("/a%2Fb").status == 404 and server.get("/x%2Fy").status == 404
    assert server.get("/x%252Fy").text == "odd"


# ---- Passwords, limits, rewrites ----

@every_protocol
@pytest.mark.parametrize("gateway", ["proxy", "static"])
def test_ambiguous_path_requires_password(monkey, backend, tmp_path, gateway):
    add(tmp_path / "users", "ana", "secret", "-b", "bcrypt", "-r", "4")
    handler = f"proxy http://{backend.address}" if gateway == "proxy" else "static"
    server = monkey(plugins=["auth", "proxy"], sections="[AUTH]\n    Location /admin/\n    UserFile users\n" + lines(f"/* {handler}"))
    for target in NAMES:
        assert server.get(target).status in (400, 401), target
    assert not backend.requests
    if gateway == "proxy":
        assert get(server, "ana", "secret", "/admin;x/secret").status == 200
        assert server.get("/x%2Fy").status == 200


def test_ambiguous_path_through_open_location_requires_password(monkey, backend, tmp_path):
    add(tmp_path / "users", "ana", "secret", "-b", "bcrypt", "-r", "4")
    server = monkey(plugins=["auth", "proxy"], sections="""
[AUTH]
    Location /admin/
    UserFile users
[AUTH]
    Location /admin/public/
    Type none
""" + lines(f"/* proxy http://{backend.address}"))
    assert server.get("/admin/public/x").status == 200
    for target in ("/admin/public/..%5Csecret", "/admin/public%2Fx", "/admin/public/..;/secret"):
        assert server.get(target).status in (400, 401), target
    assert len(backend.requests) == 1


@pytest.mark.parametrize("key", ["Requests /admin/* 3/h", "Requests 3/h by path"])
def test_ambiguous_path_counts_in_limits(monkey, backend, key):
    server = monkey(plugins=["limits", "proxy"], sections=f"[LIMITS]\n    {key}\n" + lines(f"/* proxy http://{backend.address}"))
    names = [target for target in NAMES if "secret" in target and "host" not in target]
    got = [server.get(target).status for target in names]
    assert got.count(200) == 3 and set(got) <= {200, 400, 429}, list(zip(names, got))


def test_ambiguous_path_is_exempt_only_if_every_reading_is(monkey, backend):
    server = monkey(plugins=["limits", "proxy"], sections="[LIMITS]\n    Requests 1/h\n    Except *.png\n"
                    + lines(f"/* proxy http://{backend.address}"))
    for _ in range(3):
        assert server.get("/open/x.png").status == 200
    assert [server.get("/admin;.png").status for _ in range(3)] == [200, 429, 429]


@pytest.mark.parametrize("rule", ["Redirect 302 prefix /admin https://login.example/", "Redirect 302 glob /admin/* /login",
                                  "Redirect 302 regex ^/admin/ /login", "Rewrite prefix /admin /denied"])
def test_ambiguous_path_is_refused_where_rewrite_protects(monkey, backend, rule):
    server = monkey(plugins=["rewrite", "proxy"], sections=f"[REWRITE]\n    {rule}\n" + lines(f"/* proxy http://{backend.address}"))
    for target in ("/admin%2fsecret", "/admin;x/secret", "/x/..;/admin/secret", "/%2561dmin/secret", "/%2Fadmin/secret"):
        assert server.get(target).status == 400, target
    assert not backend.requests
    assert server.get("/x%2Fy").status == 200


def test_ambiguous_path_obeys_limits_of_location(monkey, backend):
    server = monkey(plugins=["proxy"], host="MaxBodySize 1M", sections="[LOCATION]\n    Path /admin/*\n    MaxBodySize 10\n"
                    + lines(f"/* proxy http://{backend.address}"))
    assert server.get("/x", "POST", body=b"x" * 100).status == 200
    for target in ("/admin/secret", "/admin%2fsecret", "/admin;x/secret", "/%2561dmin/secret"):
        assert server.get(target, "POST", body=b"x" * 100).status == 413, target
        assert server.get(target, "POST", body=b"x").status == 200, target
    assert server.get("/admin;" + "x" * 4000, "POST", body=b"x" * 100).status == 413


# ---- Script and PATH_INFO ----

# Spellings of /admin/secret for an application behind index.php.
BEHIND_SCRIPTS = ["/index.php/admin/secret", "/index.PHP/admin/secret", "/%69ndex%2ephp/admin/secret", "/index.php%2Fadmin/secret",
                  "/index.php;x=1/admin/secret", "/index.php/admin%2Fsecret", "/index.php/admin;x/secret", "/index.php%20/admin/secret",
                  "/index.phpadmin/secret", "/index.php%20admin/secret", "/index.php%2F/host/admin/secret", "/a.php/index.php/admin/secret", "/index.php/%2fhost/admin/secret", "/index%252ephp/admin/secret",
                  "/index.phtml/admin/secret", "/index.php7/admin/secret", "//index.php//admin//secret", "/x/../index.php/./admin/secret"]
# No rule of these tests matches these paths.
HARMLESS = ["/index.php/api", "/index.php", "/index.php/", "/index.php/api/x%2Fy", "/index.php;jsessionid=1/api", "/shop/index.php/api",
            "/v1.php.html", "/files/a.php", "/index.php/administer"]


@every_protocol
def test_path_info_to_guarded_path_is_refused(monkey, backend):
    server = monkey(plugins=["proxy"], sections=lines("/admin/* status 403", f"/* proxy http://{backend.address}"))
    for target in BEHIND_SCRIPTS:
        assert server.get(target).status == 400, target
    assert not backend.requests
    for target in HARMLESS:
        assert server.get(target).status == 200, target


def test_path_info_never_begins_with_two_slashes(monkey, backend):
    """URL parsers interpret the text after two slashes as a host."""
    server = monkey(plugins=["proxy"], sections=lines("/admin/* status 403", f"/* proxy http://{backend.address}"))
    for sent, got in [("/index.php//host/admin/x?a//b", "/index.php/host/admin/x?a//b"), ("/index.php/.///host/admin", "/index.php/host/admin"),
                      ("/index%2ephp//x;y", "/index.php/x;y"), ("/a//index.html", "/a//index.html")]:
        assert server.get(sent).status == 200
        assert backend.requests[-1].target == got


def test_path_info_is_relative_to_folder_of_script(monkey, backend):
    server = monkey(plugins=["proxy"], sections=lines("/shop/admin/* status 403", f"/* proxy http://{backend.address}"))
    for target in ("/shop/index.php/admin/x", "/shop/index.phpadmin/x", "/shop%2Findex.php/admin/x"):
        assert server.get(target).status == 400, target
    assert server.get("/index.php/admin/x").status == 200


@pytest.mark.parametrize("guard", ["/admin/* redirect 302 https://login.example/", "~ ^/admin/ status 410"])
def test_path_info_is_refused_where_routes_refuse(monkey, backend, guard):
    server = monkey(plugins=["proxy"], sections=lines("*.php/* " + f"proxy http://{backend.address}", guard, f"/* proxy http://{backend.address}"))
    assert server.get("/index.php/admin/secret").status == 400
    assert not backend.requests
    assert server.get("/index.php/api").status == 200


def test_path_info_is_not_refused_by_catch_all_routes(monkey, backend):
    server = monkey(plugins=["proxy"], sections=lines(f"*.php/* proxy http://{backend.address}", "/* status 404"))
    assert server.get("/index.php/api").status == 200
    assert server.get("/api").status == 404


@pytest.mark.skipif(not php_fpm.PROGRAM, reason="there is no php-fpm")
def test_path_info_to_fastcgi_front_controller_is_refused(monkey, site, tmp_path):
    site.add("index.php", "<?php echo $_SERVER['REQUEST_URI'], ' ', $_SERVER['PATH_INFO'] ?? '';")
    with php_fpm.Fpm(tmp_path) as fpm:
        routes = ["/admin/* status 403", f"*.php fastcgi {fpm.address}", f"*.php/* fastcgi {fpm.address}", "/* static"]
        for without_info in (False, True):
            server = monkey(plugins=["fastcgi"], host="Fallback index.php",
                            sections=lines(*(each for each in routes if not (without_info and "*.php/*" in each))))
            for target in BEHIND_SCRIPTS:
                assert server.get(target).status in (400, 403), target
            assert server.get("/index.php/api").text in ("/index.php/api /api", "/index.php/api ")


def test_path_info_applies_to_scripts_of_routes_and_fallback(monkey, site):
    site.add("app.py", ENV, mode=0o755)
    site.add("run/main", ENV, mode=0o755)
    server = monkey(plugins=["cgi"], host="Fallback run/main",
                    sections=lines("/admin/* status 403", "*.py cgi", "*.py/* cgi", "/run/* cgi", "/* static"))
    for script in ("/app.py", "/run/main"):
        assert server.get(f"{script}/admin/x").status == 400
        assert environment(server.get(f"{script}/api"))["PATH_INFO"] == "/api"


@pytest.mark.parametrize("regex", ["^/[a-z]+\\.py(/|$)", "\\.(?:pl|py)(/.*)?$", "[.](pyw?|pl)", "\\.pyw?/", "(?i)\\.PY",
                                   "\\.p[yl](/|$)", "\\.[a-z]+(/|$)", "\\.p\\w/", "\\.(p[^h]|pl)/", "\\.p(y|l)(/|$)", "\\.py[0-9]?(/|$)",
                                   "\\.[^./]*/"])
def test_path_info_applies_to_scripts_of_regex_routes(monkey, site, regex):
    site.add("app.py", ENV, mode=0o755)
    server = monkey(plugins=["cgi"], sections=lines("/admin/* status 403", f"~ {regex} cgi", "/* static"))
    for target in ("/app.py/admin/x", "/app.PY/admin/x", "/app.py%2Fadmin/x"):
        assert server.get(target).status in (400, 404), target
    assert server.get("/app.py/admin/x").status == 400
    assert environment(server.get("/app.py/api"))["PATH_INFO"] == "/api"


def test_path_info_does_not_apply_to_regex_routes_without_scripts(monkey, backend):
    routes = [f"~ {regex} proxy http://{backend.address}" for regex in ("^/v1\\.2-beta/", "^/\\.well-known/", "^/(a|b)/", "\\\\.py")]
    server = monkey(plugins=["proxy"], sections=lines("/admin/* status 403", *routes, f"/* proxy http://{backend.address}"))
    for target in ("/v1.2-beta/admin/x", "/.well-known/admin/x", "/a/x.py/admin/y"):
        assert server.get(target).status == 200, target


@every_protocol
def test_path_info_to_protected_path_requires_password(monkey, backend, tmp_path):
    add(tmp_path / "users", "ana", "secret", "-b", "bcrypt", "-r", "4")
    server = monkey(plugins=["auth", "proxy"], sections="[AUTH]\n    Location /admin/\n    UserFile users\n"
                    + lines(f"/* proxy http://{backend.address}"))
    for target in BEHIND_SCRIPTS:
        assert server.get(target).status == 401, target
    assert not backend.requests
    assert get(server, "ana", "secret", "/index.php/admin/secret").status == 200
    for target in HARMLESS:
        assert server.get(target).status == 200, target


def test_path_info_counts_in_limits(monkey, backend):
    server = monkey(plugins=["limits", "proxy"], sections="[LIMITS]\n    Requests /admin/* 3/h\n" + lines(f"/* proxy http://{backend.address}"))
    got = [server.get(target).status for target in BEHIND_SCRIPTS]
    assert got.count(200) == 3 and set(got) == {200, 429}, list(zip(BEHIND_SCRIPTS, got))


def test_path_info_obeys_security_rules(monkey, backend):
    server = monkey(plugins=["security", "proxy"], sections="[SECURITY]\n    Deny /admin/*\n" + lines(f"/* proxy http://{backend.address}"))
    for target in BEHIND_SCRIPTS:
        assert server.get(target).status == 403, target
    for target in HARMLESS:
        assert server.get(target).status == 200, target


def test_path_info_may_be_allowed_by_naming_the_script(monkey, backend):
    server = monkey(plugins=["security", "proxy"], sections="[SECURITY]\n    Deny /admin/*\n    Allow /index.php/*\n    Deny /*\n"
                    + lines(f"/* proxy http://{backend.address}"))
    assert server.get("/index.php/api").status == 200
    for target in ("/index.php/admin/x", "/admin/x", "/api", "/index.php/..;/api"):
        assert server.get(target).status in (400, 403), target


def test_path_info_is_refused_where_rewrite_protects(monkey, backend):
    server = monkey(plugins=["rewrite", "proxy"], sections="[REWRITE]\n    Redirect 302 prefix /admin https://login.example/\n"
                    "    Rewrite prefix /old /gone\n" + lines(f"/* proxy http://{backend.address}"))
    for target in ("/index.php/admin/x", "/index.php/old/x", "/index.phpadmin/x"):
        assert server.get(target).status == 400, target
    assert not backend.requests
    assert server.get("/index.php/api").status == 200


@pytest.mark.parametrize("rule", ["Rewrite regex ^/(?!index\\.php)(.*)$ /index.php/$1", "Rewrite regex ^/(?!index\\.php)(.*)$ /index.php?q=$1"])
def test_path_info_after_rewrite_to_front_controller_is_allowed(monkey, backend, rule):
    server = monkey(plugins=["rewrite", "limits", "security", "proxy"], sections=f"[REWRITE]\n    {rule}\n[LIMITS]\n    Requests 3/h by path\n"
                    "[SECURITY]\n    Deny /admin/*\n" + lines(f"/* proxy http://{backend.address}"))
    assert [server.get("/api").status for _ in range(4)] == [200, 200, 200, 429], "each is counted once"
    assert server.get("/index.php/other").status == 200
    for target in ("/admin/x", "/index.php/admin/x"):
        assert server.get(target).status == 403, target


# ---- The Destination header ----

# Destinations of a MOVE: /admin/y, and other spellings of it.
DESTINATIONS = ["/admin/y", "http://{}/admin/y", "https://{}/admin/y", "HTTP://{}/%61dmin/y", "http://{}/admin%2Fy", "/admin;x/y", "/x/../admin/y",
                "/x/..;/admin/y", "/x/%2e%2e/admin/y", "/index.php/admin/y", "/%2561dmin/y", "http://{}/x\\..\\admin/y", "/admin/y?z"]
MALFORMED = ["", "x", "admin/y", "//other/admin/y", "ftp://{}/x", "http:/x", "http://{}/x#y", "/x y", "/%zz", "/%00", "/../x", "http://u@{}/x",
             "http:///x", "http://{}:99999/x", "*", "/x\x80"]


def move(server, to, source="/public/x", method="MOVE"):
    host = f"localhost:{server.port}"
    return server.get(source, method, [("Destination", to.replace("{}", host))])


@every_protocol
def test_destination_on_guarded_path_is_refused(monkey, backend):
    server = monkey(plugins=["proxy"], sections=lines("/admin/* status 403", f"/* proxy http://{backend.address}"))
    for to in DESTINATIONS:
        assert move(server, to).status == 400, to
    assert not backend.requests
    for to in ("/public/y", "http://{}/public/y", "/public/a%2Fb", "/administer"):
        assert move(server, to).status == 200, to
        assert move(server, to, method="COPY").status == 200, to


@every_protocol
def test_destination_that_is_malformed_is_refused(monkey, backend):
    server = monkey(plugins=["proxy"], sections=lines(f"/* proxy http://{backend.address}"))
    for to in MALFORMED:
        assert move(server, to).status == 400, to
    assert move(server, "http://other.example/public/y").status == 502
    assert not backend.requests
    assert server.get("/x", fields=[("Destination", "somewhere")]).status == 200, "Destination has no meaning for GET"


def test_destination_is_rewritten_for_backend(monkey, backend):
    server = monkey(plugins=["proxy"], sections=lines(f"/dav/* proxy http://{backend.address}/app/", f"/* proxy http://{backend.address}"))

    def seen(to, source="/dav/x"):
        response = move(server, to, source)
        return backend.requests[-1].get("Destination") if response.status == 200 else response.status

    assert seen("http://{}/dav/y%20z?q") == "/app/y%20z?q"
    assert seen("/dav/a/../b") == "/app/b"
    assert seen("https://{}/y;v=1%2F2", "/x") == "/y;v=1%2F2"
    for to in ("/davy", "/other", "/dav/../y", "/%64av/y"):
        assert seen(to) == 502, to
    assert seen("/dav/..;/y") == 400


def test_destination_on_protected_path_requires_password(monkey, backend, tmp_path):
    add(tmp_path / "users", "ana", "secret", "-b", "bcrypt", "-r", "4")
    server = monkey(plugins=["auth", "proxy"], sections="[AUTH]\n    Location /admin/\n    UserFile users\n"
                    + lines(f"/* proxy http://{backend.address}"))
    for to in DESTINATIONS:
        assert move(server, to).status in (400, 401), to
    assert not backend.requests
    assert move(server, "/public/y").status == 200


def test_destination_obeys_security_rules_and_limits(monkey, backend):
    server = monkey(plugins=["security", "limits", "proxy"], sections="[SECURITY]\n    IgnoreCase on\n    Deny /admin/*\n[LIMITS]\n"
                    "    Requests /files/* 2/h\n" + lines(f"/* proxy http://{backend.address}"))
    for to in [*DESTINATIONS, "/ADMIN/a/path/that/is/much/longer/than/that/of/the/request"]:
        assert move(server, to).status in (400, 403), to
    assert [move(server, f"/files/{i}").status for i in range(4)] == [200, 200, 429, 429]


@every_protocol
def test_destination_obeys_limits_of_location(monkey, backend):
    server = monkey(plugins=["proxy"], host="MaxBodySize 1M", sections="[LOCATION]\n    Path /admin/*\n    MaxBodySize 10\n"
                    + lines(f"/* proxy http://{backend.address}"))

    def copy(to):
        fields = [("Destination", to.replace("{}", f"localhost:{server.port}"))]
        return server.get("/public/x", "COPY", fields, b"x" * 100).status

    for to in DESTINATIONS:
        assert copy(to) in (400, 413), to
    assert not backend.requests
    assert copy("/public/y") == 200


def test_destination_is_refused_where_rewrite_protects(monkey, backend):
    server = monkey(plugins=["rewrite", "proxy"], sections="[REWRITE]\n    Redirect 302 prefix /admin https://login.example/\n"
                    "    Rewrite prefix /dav /remote\n" + lines(f"/* proxy http://{backend.address}"))
    assert move(server, "/admin/y").status == 400
    assert move(server, "/dav/y", "/dav/x").status == 200
    assert not [each for each in backend.requests if "/admin" in str(each)]
