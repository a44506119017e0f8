# SPDX-License-Identifier: Apache-2.0
"""Serves each cookbook recipe as printed, except for temporary folders and free ports, and checks that it works as
described. (test_docs.py checks that each recipe loads without a warning.)"""
import base64
import collections
import contextlib
import os
import re
import shutil
import subprocess

import pytest

import php_fpm
from backend import Backend, response
from dns_server import A, DnsServer, a
from manual import blocks, run, write_configuration
from monkey import ENVIRONMENT, PROGRAM, ROOT, SECONDS
from proc import wait_until

PAGE, GUIDE = ROOT / "docs/guide/cookbook.md", ROOT / "docs/guide/php.md"
PROXY = ROOT / "docs/guide/proxy.md"
RECIPES = re.findall(r"^## (.+)$", PAGE.read_text(), re.MULTILINE)


def configurations(title, page=PAGE):
    """Returns the configurations under a heading, or all configurations of the page."""
    text = page.read_text()
    if title is None:
        return [block for _, block in blocks(page) if "[HOST]" in block]
    start = text.count("\n", 0, text.index(f"\n## {title}\n") + 1) + 1
    later = [text.count("\n", 0, m.start()) + 1 for m in re.finditer(r"^## ", text, re.MULTILINE)]
    end = min([line for line in later if line > start], default=1 << 30)
    return [block for line, block in blocks(page) if start < line < end and "[HOST]" in block]


class RecipeServer:
    """Serves recipes from a temporary folder."""

    def __init__(self, folder, start):
        self.folder, self.start = folder, start

    def file(self, path, text="", mode=0o644):
        """Creates the file that an absolute path names, but below the test's folder."""
        target = self.folder / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)

    def serve(self, title, index=0, change=lambda text: text, page=PAGE, **keys):
        text = change(configurations(title, page)[index])
        for i, old in enumerate(re.findall(r"^ +Listen +\S+", text, re.MULTILINE)):
            text = text.replace(old, f"    Listen 127.0.0.{i + 1}:0", 1)
        path = write_configuration(self.folder, text)
        return self.start(args=["-c", path, "-w", "1"], **keys)


@pytest.fixture
def recipes(tmp_path, monkey):
    return RecipeServer(tmp_path, monkey)


def ask(server, target, host="example.org", **how):
    return server.get(target, host=host, **how)


def test_list_of_recipes_is_complete():
    listed = re.findall(r"^- \[(.+)\]\(#", PAGE.read_text(), re.MULTILINE)
    assert listed == RECIPES


@pytest.mark.parametrize("title", [title for title in RECIPES if not title.startswith("A static site")])
def test_every_recipe_is_a_complete_configuration(title):
    found = configurations(title)
    assert found and all(text.startswith("[SERVER]\n") for text in found)


def test_certbot_recipe_serves_both_ports(recipes, tmp_path):
    recipes.file("/srv/www/index.html", "home")
    server = recipes.serve("Let's Encrypt", 1)
    assert ask(server, "/").text == "home" and server.encrypts == [False, True]


def test_single_page_application_falls_back_to_the_index(recipes):
    recipes.file("/srv/www/app/index.html", "app")
    recipes.file("/srv/www/app/assets/a.js", "code")
    server = recipes.serve("Single-page application")
    assert (ask(server, "/users/7").status, ask(server, "/users/7").text) == (200, "app")
    assert ask(server, "/users/7")["Cache-Control"] == "no-cache"
    assert "immutable" in ask(server, "/assets/a.js")["Cache-Control"]
    assert ask(server, "/assets/missing.js").status == 404


TELLS = "<?php echo $_SERVER['SCRIPT_NAME'], ' ', $_SERVER['REQUEST_URI'], ' ', $_SERVER['HTTP_AUTHORIZATION'] ?? '';"
with_php = pytest.mark.skipif(not php_fpm.PROGRAM, reason="there is no php-fpm")


@pytest.fixture
def fpm(tmp_path):
    """Returns a function that makes a recipe use the test's PHP-FPM."""
    (tmp_path / "run").mkdir()
    with php_fpm.Fpm(tmp_path / "run") as each:
        yield lambda text: text.replace("unix:/run/php/php-fpm.sock", each.address)


@with_php
@pytest.mark.parametrize("page, title", [(PAGE, "PHP"), (GUIDE, None)])
def test_php_recipe_runs_scripts_and_serves_files(recipes, fpm, page, title):
    recipes.file("/srv/www/php/index.php", TELLS)
    recipes.file("/srv/www/php/a.txt", "text")
    server = recipes.serve(title, change=fpm, page=page)
    assert ask(server, "/").text == "/index.php / "
    assert ask(server, "/index.php?a=1").text == "/index.php /index.php?a=1 "
    assert ask(server, "/a.txt").text == "text"


@with_php
def test_wordpress_recipe_runs_no_uploaded_script(recipes, fpm):
    for name in ("index.php", "wp-admin/index.php", "wp-login.php", "wp-content/uploads/evil.php"):
        recipes.file(f"/srv/www/wordpress/{name}", TELLS)
    recipes.file("/srv/www/wordpress/wp-content/uploads/a.jpg", "picture")
    server = recipes.serve("WordPress", change=fpm)
    assert ask(server, "/2026/11/hello/?p=1").text == "/index.php /2026/11/hello/?p=1 "
    assert ask(server, "/wp-json/wp/v2/posts").text == "/index.php /wp-json/wp/v2/posts "
    assert ask(server, "/wp-sitemap.xml").text == "/index.php /wp-sitemap.xml "
    assert ask(server, "/wp-admin/").text == "/wp-admin/index.php /wp-admin/ "
    assert ask(server, "/wp-login.php", fields=[("Authorization", "Basic YTpi")]).text.endswith(" Basic YTpi")
    assert ask(server, "/wp-content/uploads/a.jpg").text == "picture"
    for path in ("evil.php", "evil.php/x", "../uploads/evil.php"):
        assert ask(server, f"/wp-content/uploads/{path}").status == 403, path
    for path in ("/index.php", "/", "/contact/"):
        assert ask(server, path, method="POST", body=b"x" * (2 << 20)).status == 200


@pytest.mark.parametrize("title", ["WordPress", "DokuWiki"])
def test_php_guide_has_the_same_configuration(title):
    """tests/apps runs these applications with the guide's configuration."""
    assert configurations(title) == configurations(title, GUIDE)


@pytest.fixture
def backends():
    """`backends(name, ...)` starts backends that respond with their names; `.stop()` ends one of them."""
    with contextlib.ExitStack() as ends:
        yield lambda *names: [ends.enter_context(Backend(lambda request, name=name: response(name))) for name in names]


def with_servers(addresses, servers, text):
    """Replaces the backend addresses in the configuration with those of the test."""
    for address, server in zip(addresses, servers, strict=True):
        assert address in text
        text = text.replace(address, server.address)
    return text if "[SERVER]" in text else f"[SERVER]\n    Listen 80\n\n{text}"


def test_reverse_proxy_recipe_serves_assets_itself(recipes, backends):
    (program,) = backends("program")
    recipes.file("/srv/app/public/assets/a.css", "style")

    def in_clear_text(text):
        text = re.sub(r"^ +(Listen +443|RedirectToHTTPS|Certificate).*\n", "", text, flags=re.MULTILINE)
        return with_servers(["127.0.0.1:3000"], [program], text)

    server = recipes.serve("Reverse proxy", change=in_clear_text)
    assert [ask(server, path, host="app.example.org").text for path in ("/assets/a.css", "/x", "/events")] == [
        "style", "program", "program"]
    assert ask(server, "/upload/a", host="app.example.org", method="POST", body=b"x" * 2_000_000).text == "program"
    assert ask(server, "/a", host="app.example.org", method="POST", body=b"x" * 2_000_000).status == 413


def test_header_recipe_for_backends_sets_and_removes_headers(recipes):
    with Backend() as program, Backend() as dav:
        server = recipes.serve("Headers for a backend", change=lambda text: with_servers(
            ["127.0.0.1:3000", "127.0.0.1:4918"], [program, dav], text))
        reply = ask(server, "/api/x", host="app.example.org", fields=[("X-Real-IP", "6.6.6.6"), ("Accept-Encoding", "gzip")])
        assert reply.status == 200
        seen = program.requests[-1]
        assert seen.all("X-Real-IP") == ["127.0.0.1"] and seen.all("X-Tenant") == ["app.example.org"]
        assert seen.all("Authorization") == ["Bearer secret-of-the-api"] and not seen.all("Accept-Encoding")
        assert not ask(server, "/x", host="app.example.org").text.count("Bearer")
        assert ask(server, "/dav/a", method="MOVE", host="app.example.org", fields=[("Destination", "https://app.example.org/dav/b")]).status == 200
        assert dav.requests[-1].all("Destination") == ["http://app.example.org/b"] and dav.requests[-1].target == "/a"


def test_load_balancer_recipe_is_sticky_and_fails_over(recipes, backends):
    servers = backends("one", "two", "spare")
    addresses = ["10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000"]
    server = recipes.serve("Load balancer", change=lambda text: with_servers(addresses, servers, text))
    first = ask(server, "/")
    cookie = [("Cookie", first["Set-Cookie"].partition(";")[0])]
    assert {ask(server, "/", fields=cookie).text for _ in range(4)} == {first.text} < {"one", "two"}
    servers[first.text == "two"].stop()
    assert ask(server, "/", fields=cookie).text == {"one": "two", "two": "one"}[first.text]
    assert ask(server, "/live").status == 200


def test_canary_recipe_splits_by_weight_and_cookie_and_mirrors(recipes, backends):
    old, new, hidden = servers = backends("old", "new", "hidden")
    addresses = ["10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000"]
    server = recipes.serve("Canary", change=lambda text: with_servers(addresses, servers, text).replace("share=1%", "share=100%"))
    assert collections.Counter(ask(server, "/").text for _ in range(40)) == {"old": 38, "new": 2}
    wait_until(lambda: len(hidden.requests) == 40, "the copies")
    assert {ask(server, "/", fields=[("Cookie", "a=b; beta=1")]).text for _ in range(4)} == {"new"}
    assert len(old.requests) == 38 and len(new.requests) == 6


def test_load_balancing_guide_prefers_weight_and_keeps_the_backup(recipes, backends):
    """Idle servers get requests by weight; the backup is selected only when all others are down."""
    servers = backends("one", "two", "three", "spare")
    addresses = ["10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000", "127.0.0.1:8001"]
    server = recipes.serve("A load balancer", page=PROXY, change=lambda text: with_servers(addresses, servers, text))
    assert collections.Counter(ask(server, "/").text for _ in range(8)) == {"three": 4, "one": 2, "two": 2}
    servers[2].stop()
    assert {ask(server, "/").text for _ in range(8)} == {"one", "two"}
    servers[0].stop()
    servers[1].stop()
    assert [ask(server, "/").text for _ in range(3)] == ["spare"] * 3


def test_load_balancing_guide_hashes_paths_and_sets_a_cookie(recipes, backends):
    servers = backends("a", "b", "c", "d")
    addresses = ["10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:9000", "10.0.0.4:9000"]
    server = recipes.serve("A load balancer", 1, page=PROXY, change=lambda text: with_servers(addresses, servers, text))
    found = {path: ask(server, path).text for path in (f"/search/{i}" for i in range(20))}
    assert set(found.values()) == {"c", "d"}
    assert {path: ask(server, path).text for path in found} == found
    assert ask(server, "/")["Set-Cookie"].startswith("SERVER=")


def test_www_recipe_redirects_to_the_bare_domain(recipes):
    server = recipes.serve("Redirect www to the bare domain")
    reply = ask(server, "/a?b", host="www.example.org")
    assert (reply.status, reply["Location"]) == (301, "http://example.org/a?b")
    assert ask(server, "/").status == 403, "the folder is empty"


@pytest.mark.parametrize("own, location", [("", "https://www.example.org/a?b"), ("    RedirectToHTTPS off\n", "https://example.org/a?b")])
def test_www_recipe_over_https_takes_one_redirect_with_own_key(recipes, own, location):
    def over_https(text):
        text = text.replace("http://", "https://").replace("[HOST]\n", "    RedirectToHTTPS 443\n\n[HOST]\n", 1)
        return text + own

    reply = ask(recipes.serve("Redirect www to the bare domain", change=over_https), "/a?b", host="www.example.org")
    assert reply["Location"] == location


def test_https_recipe_redirects_permanently(recipes):
    # The port is random, so the server cannot know the port that clients see: the test sets 443.
    server = recipes.serve("Redirect HTTP to HTTPS", change=lambda text: text.replace("RedirectToHTTPS  on", "RedirectToHTTPS 443"))
    reply = ask(server, "/a?b")
    assert (reply.status, reply["Location"]) == (308, "https://example.org/a?b")


def test_rewrite_recipe_redirects_and_rewrites(recipes):
    recipes.file("/srv/www/img/cat.jpg", "cat")
    server = recipes.serve("Redirects and rewrites by pattern")
    assert ask(server, "/old/a?b")["Location"] == "/new/a?b"
    assert ask(server, "/2019/05/trip")["Location"] == "/archive/2019-05/trip.html"
    assert ask(server, "/pictures/cat.jpeg").text == "cat"


def test_regex_recipe_selects_hosts_and_paths(recipes):
    recipes.file("/srv/www/a", "main")
    recipes.file("/srv/mirror/a", "mirror")
    server = recipes.serve("Names and paths by regular expression")
    assert ask(server, "/a").text == "main"
    assert ask(server, "/a", host="WWW12.example.org").text == "mirror"
    assert [ask(server, path, host="www1.example.org").status for path in ("/archive/2019/x", "/x.PHP", "/a")] == [410, 404, 200]


def test_password_recipe_protects_a_folder(recipes):
    recipes.file("/srv/www/private/a", "secret")
    recipes.file("/srv/www/b", "public")
    done = run("passwd", "-c", "-b", "sha256", recipes.folder / "made", "ana", typed="swordfish\n")
    assert done.returncode == 0, done.stderr
    server = recipes.serve("Password for a folder", change=lambda text: text.replace("/etc/monkey/users", "users"))
    assert ask(server, "/b").text == "public"
    assert ask(server, "/private/a").status == 401
    shutil.copy(recipes.folder / "made", recipes.folder / "users")
    server.stop()
    path = recipes.folder / "monkey.conf"
    server = recipes.start(args=["-c", path, "-w", "1"])
    credentials = base64.b64encode(b"ana:swordfish").decode()
    assert ask(server, "/private/a", fields=[("Authorization", f"Basic {credentials}")]).text == "secret"


def test_address_or_password_recipe_accepts_either(recipes):
    recipes.file("/srv/www/intern/a", "for us")
    recipes.file("/etc/monkey/users", "ana:$5$x$y\n")
    server = recipes.serve("Address or password")
    assert ask(server, "/intern/a").text == "for us"
    server = recipes.serve("Address or password", change=lambda text: text.replace(" 127.0.0.1", ""))
    assert ask(server, "/intern/a").status == 401


def test_single_sign_on_recipe_asks_the_service(recipes):
    def decide(request):
        if request.target != "/oauth2/auth":
            return response(f"page {request.target}")
        known = "_oauth2_proxy" in (request.get("Cookie") or "")
        return response("", "202 Accepted", [("X-Auth-Request-User", "ana")]) if known else response("", "401 Unauthorized")

    with Backend(decide) as service, Backend() as program:
        server = recipes.serve("Single sign-on with Authelia or oauth2-proxy", change=lambda text: with_servers(
            ["127.0.0.1:4180", "127.0.0.1:3000"], [service, program], text))
        reply = ask(server, "/a?b", host="app.example.org", fields=[("X-Auth-Request-User", "root")])
        assert reply.status == 302 and reply["Location"] == "/oauth2/start?rd=http%3A%2F%2Fapp.example.org%2Fa%3Fb" and not program.requests
        assert ask(server, "/oauth2/start?rd=x", host="app.example.org").text == "page /oauth2/start?rd=x"
        for _ in range(2):
            assert ask(server, "/a", host="app.example.org", fields=[("Cookie", "_oauth2_proxy=x")]).status == 200
            assert program.requests[-1].all("X-Auth-Request-User") == ["ana"]


def test_address_recipe_rejects_other_addresses(recipes):
    recipes.file("/srv/www/admin/a", "for us")
    server = recipes.serve("Allow only some addresses")
    assert ask(server, "/admin/a").text == "for us"
    server = recipes.serve("Allow only some addresses", change=lambda text: text.replace(" 127.0.0.1 ::1", ""))
    assert ask(server, "/admin/a").status == 403


def test_crawler_recipe_denies_crawlers_and_scanners(recipes):
    for name in ("index.html", "robots.txt"):
        recipes.file(f"/srv/www/{name}", name)
    server = recipes.serve("Block AI crawlers and scanners")

    def answer(agent, target="/"):
        return ask(server, target, fields=[("User-Agent", agent)]).status

    for agent in ("Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
                  "Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com)", "CCBot/2.0 (https://commoncrawl.org/faq/)",
                  "Mozilla/5.0 (compatible; Bytespider; spider-feedback@bytedance.com)", "sqlmap/1.7#stable (https://sqlmap.org)",
                  "Mozilla/5.00 (Nikto/2.1.6)", "my own bot"):
        assert answer(agent) == 403 and answer(agent, "/robots.txt") == 200, agent
    for agent in ("Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0", "curl/8.8.0", "Wget/1.21", "Go-http-client/2.0",
                  "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15",
                  "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36",
                  "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Mozilla/5.0 (compatible; bingbot/2.0)",
                  "DuckDuckBot/1.1", "facebookexternalhit/1.1", "python-requests/2.32", "Uptime-Kuma/1.23"):
        assert answer(agent) == 200, agent


@pytest.mark.parametrize("name", ["ai-crawlers.txt", "scanners.txt"])
def test_list_of_user_agents_has_each_name_once(name):
    """A name that contains another one of the list would have no effect."""
    lines = (ROOT / "conf/lists" / name).read_text().splitlines()
    names = [line.lower() for line in lines if line and not line.startswith("#")]
    assert names and re.search(r"Last revised: 20\d\d-\d\d-\d\d", "\n".join(lines))
    assert not [(one, other) for one in names for other in names if one is not other and one in other]


def test_challenge_recipe_denies_known_crawlers_and_challenges_browsers(recipes):
    for name in ("index.html", "robots.txt", "feed.xml"):
        recipes.file(f"/srv/www/{name}", name)
    recipes.file("/etc/monkey/search-engines.txt", "192.0.2.0/24 # a search engine\n127.0.0.9\n")
    server = recipes.serve("Challenge crawlers that pretend to be browsers")

    def answer(agent, target="/", source=None):
        with server.connect(source=source) as c:
            return c.get(target, host="example.org", fields=[("User-Agent", agent)])

    firefox, google = "Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0", "Mozilla/5.0 (compatible; Googlebot/2.1)"
    assert "data-token" in answer(firefox).text and answer(firefox).status == 403
    assert answer(firefox, "/robots.txt").status == answer(firefox, "/feed.xml").status == answer("curl/8.8.0").status == 200
    assert answer("Mozilla/5.0 (compatible; ClaudeBot/1.0)").status == 403 and "data-token" not in answer("Mozilla/5.0 (compatible; ClaudeBot/1.0)").text
    assert "data-token" in answer(google).text and answer(google, source="127.0.0.9").status == 200 and "data-token" in answer(firefox, source="127.0.0.9").text


def test_slow_crawler_recipe_limits_all_crawlers_together(recipes):
    recipes.file("/srv/www/index.html", "home")
    server = recipes.serve("Slow down crawlers")
    seen = [ask(server, "/", fields=[("User-Agent", f"{name}/1.0")]).status for name in ("GPTBot", "CCBot") * 6]
    assert seen == [200] * 10 + [429] * 2 and ask(server, "/").status == 200


def test_network_list_recipe_denies_the_networks_of_the_file(recipes):
    recipes.file("/srv/www/index.html", "home")
    recipes.file("/etc/monkey/partners.txt", "127.0.0.1 # us\n")
    recipes.file("/etc/monkey/blocked.txt", "127.0.0.0/8 ; SBL1\n")
    server = recipes.serve("Block a list of networks")
    assert ask(server, "/").text == "home"
    with server.connect(source="127.0.0.9") as c:
        assert c.get("/", host="example.org").status == 403


def test_country_recipe_denies_and_admits_countries(recipes):
    recipes.file("/srv/www/login", "login")
    recipes.file("/srv/www/a", "a")

    def behind_proxy(text):
        return text.replace("[SECURITY]\n", "[SECURITY]\n    TrustedProxy 127.0.0.1\n    RealAddress X-Forwarded-For\n")

    def statuses(server, client):
        return [ask(server, path, fields=[("X-Forwarded-For", client)]).status for path in ("/a", "/login")]

    server = recipes.serve("Block or admit countries", change=behind_proxy)
    assert [statuses(server, client) for client in ("192.0.2.1", "203.0.113.1", "10.1.2.3")] == [[200, 200], [200, 403], [200, 200]]
    server.stop()
    server = recipes.serve("Block or admit countries", change=lambda text: behind_proxy(text).replace("country KP", "country DE"))
    assert [statuses(server, client) for client in ("192.0.2.1", "10.1.2.3")] == [[403, 403], [200, 200]]


def test_listing_recipe_hides_unfinished_files(recipes):
    recipes.file("/srv/files/new.iso")
    recipes.file("/srv/files/half.tmp")
    server = recipes.serve("Download area with listings")
    page = ask(server, "/", fields=[("Accept", "application/json")]).text
    assert "new.iso" in page and "half.tmp" not in page and '"sort":"time"' in page


def test_upload_recipe_stores_files_of_users(recipes):
    recipes.file("/srv/team/old.txt", "old")
    done = run("passwd", "-c", "-b", "sha256", recipes.folder / "made", "ana", typed="swordfish\n")
    assert done.returncode == 0, done.stderr
    recipes.serve("Let a team upload files", change=lambda text: text.replace("/etc/monkey/users", "users")).stop()
    shutil.copy(recipes.folder / "made", recipes.folder / "users")
    server = recipes.start(args=["-c", recipes.folder / "monkey.conf", "-w", "1"])
    form = {"method": "POST", "host": "team.example.org", "body": b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.html"\r\n\r\n<p>\r\n--b--\r\n'}
    kind = [("Content-Type", "multipart/form-data; boundary=b")]
    user = [("Authorization", "Basic " + base64.b64encode(b"ana:swordfish").decode())]
    assert ask(server, "/", fields=kind, **form).status == 401
    assert ask(server, "/", fields=kind + user, **form).status == 303
    reply = ask(server, "/a.html", fields=user, host="team.example.org")
    assert reply.text == "<p>" and reply["Content-Security-Policy"] == "sandbox"
    assert "form-action 'self'" in ask(server, "/", fields=user, host="team.example.org")["Content-Security-Policy"]


def test_cache_recipe_sets_cache_control(recipes):
    for name in ("index.html", "assets/a.1f2e.js", "robots.txt"):
        recipes.file(f"/srv/www/{name}")
    server = recipes.serve("Cache rules for a built site")
    assert [ask(server, path)["Cache-Control"] for path in ("/", "/assets/a.1f2e.js", "/robots.txt")] == [
        "no-cache", "public, max-age=31536000, immutable", "max-age=3600"]


def test_compression_recipe_compresses_text(recipes):
    recipes.file("/srv/www/a.txt", "text " * 1000)
    server = recipes.serve("Compression")
    assert ask(server, "/a.txt", fields=[("Accept-Encoding", "gzip")])["Content-Encoding"] == "gzip"


def test_error_page_recipe_sends_its_pages(recipes):
    for status in (403, 404, 503, "sorry"):
        recipes.file(f"/srv/www/errors/{status}.html", f"page {status}")
    server = recipes.serve("Custom error pages")
    assert (ask(server, "/none").status, ask(server, "/none").text) == (404, "page 404")
    assert ask(server, "/.git").text == "page 403"
    server = recipes.serve("Custom error pages", change=lambda text: text + "[ROUTES]\n    /broken status 502\n    /* static\n")
    assert (ask(server, "/broken").status, ask(server, "/broken").text) == (502, "page sorry")


def test_port_recipe_separates_the_hosts(recipes):
    recipes.file("/srv/www/a", "public")
    recipes.file("/srv/admin/a", "admin")
    server = recipes.serve("A host with its own port")
    assert ask(server, "/a", host="admin.example.org").text == "public"
    assert [server.get(path, host="admin.example.org", listener=1).text for path in ("/a", "/health")] == ["admin", "ok\n"]


def test_alias_recipe_serves_folders_outside_of_the_root(recipes):
    recipes.file("/srv/www/docs/a", "hidden")
    recipes.file("/srv/docs/a", "a document")
    recipes.file("/srv/photos/b", "a photo")
    server = recipes.serve("Folders outside the root")
    assert [ask(server, path).text for path in ("/docs/a", "/photos/b")] == ["a document", "a photo"]


def test_upload_recipe_raises_the_limit_of_one_host(recipes):
    script = "#!/bin/sh\necho Content-Type: text/plain\necho\necho $CONTENT_LENGTH\n"
    recipes.file("/srv/www/a")
    recipes.file("/srv/upload/cgi-bin/count", script, 0o755)
    server = recipes.serve("Large uploads")
    how = dict(method="POST", body=b"x" * 3_000_000)
    assert ask(server, "/cgi-bin/count", host="upload.example.org", **how).text == "3000000\n"
    assert ask(server, "/a", **how).status == 413


def test_path_recipe_sets_limits_and_logs(recipes):
    for name in ("upload", "other"):
        recipes.file(f"/srv/www/cgi-bin/{name}", "#!/bin/sh\necho Content-Type: text/plain\necho\nwc -c\n", 0o755)
    recipes.file("/srv/www/api/a", "a")
    server = recipes.serve("Limits and logs for some paths")
    how = dict(method="POST", body=b"x" * 3_000_000)
    assert ask(server, "/cgi-bin/upload", **how).text == "3000000\n"
    assert ask(server, "/cgi-bin/other", **how).status == 413
    assert ask(server, "/health").text == "ok\n"
    assert ask(server, "/api/a").text == "a"
    server.stop()
    logs = recipes.folder / "var/log/monkey"
    assert '"target":"/api/a"' in (logs / "api.json").read_text()
    assert len((logs / "access.log").read_text().splitlines()) == 2


def test_header_recipe_sets_security_and_cors_headers(recipes):
    recipes.file("/srv/www/downloads/a", "a")
    server = recipes.serve("Security headers and CORS")
    reply = ask(server, "/downloads/a")
    assert (reply["X-Frame-Options"], reply["Content-Disposition"]) == ("SAMEORIGIN", "attachment")
    preflight = ask(server, "/api/x", method="OPTIONS", fields=[("Origin", "https://app.example.org"),
                                                              ("Access-Control-Request-Method", "PUT")])
    assert (preflight.status, preflight["Access-Control-Allow-Origin"]) == (204, "https://app.example.org")


def test_rate_limit_recipe_answers_429(recipes):
    recipes.file("/srv/www/login", "login")
    server = recipes.serve("Rate limits")
    with server.connect() as c:
        seen = [c.get("/login", host="example.org").status for _ in range(11)]
    assert seen == [200] * 10 + [429]


def test_memory_limit_recipe_serves_and_reports_a_limit_that_is_too_low(recipes):
    title = "A memory limit that does not kill the server"
    recipes.file("/srv/www/a.txt", "text")
    server = recipes.serve(title)
    assert ask(server, "/a.txt").text == "text" and ask(server, "/health").text == "ok\n"
    assert "memory" not in server.log
    server.stop()
    server = recipes.serve(title, change=lambda text: text.replace("200M", "20M 30M"), expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "Limit" in server.log


def test_maintenance_recipe_answers_503_with_its_page(recipes):
    recipes.file("/srv/www/maintenance.html", "back soon")
    recipes.file("/srv/www/maintenance/style.css", "style")
    server = recipes.serve("Maintenance page")
    reply = ask(server, "/a")
    assert (reply.status, reply.text, reply["Retry-After"]) == (503, "back soon", "600")
    style = ask(server, "/maintenance/style.css")
    assert style.text == "style" and "Retry-After" not in style


def test_cgi_recipe_runs_scripts(recipes):
    recipes.file("/srv/www/cgi-bin/hello", "#!/bin/sh\necho Content-Type: text/plain\necho\necho Hello, $QUERY_STRING\n", 0o755)
    server = recipes.serve("CGI scripts")
    assert ask(server, "/cgi-bin/hello?Kim").text == "Hello, Kim\n"


def test_proxy_recipe_logs_the_forwarded_address(recipes):
    recipes.file("/srv/www/a", "a")
    log = recipes.folder / "access.log"
    server = recipes.serve("Client addresses from a proxy or load balancer",
                           change=lambda text: text.replace("[SERVER]\n", f"[SERVER]\n    AccessLog {log}\n"))
    assert ask(server, "/a", fields=[("X-Forwarded-For", "198.51.100.7")]).status == 200
    server.stop()
    assert log.read_text().startswith("198.51.100.7 ")


def test_json_log_recipe_logs_requests_without_health_checks(recipes):
    recipes.file("/srv/www/a", "a")
    server = recipes.serve("One log per site, as JSON")
    ask(server, "/a")
    ask(server, "/healthz")
    server.stop()
    lines = (recipes.folder / "var/log/monkey/example.json").read_text().splitlines()
    assert len(lines) == 1 and '"target":"/a"' in lines[0]


def test_spans_recipe_exports_attempts_of_its_backend(recipes):
    with Backend() as app, Backend() as collector:
        server = recipes.serve("Spans for OpenTelemetry", change=lambda text: text.replace("127.0.0.1:3000", app.address).replace(
            "127.0.0.1:4318", collector.address).replace("1%", "100%"))
        assert ask(server, "/a").status == 200
        wait_until(lambda: any(b"gateway" in request.body and request.body.count(b'"spanId"') >= 2 for request in collector.requests), "two spans")


def test_health_recipe_answers_all_endpoints(recipes):
    server = recipes.serve("Health checks and Prometheus")
    assert [ask(server, path, host="localhost").status for path in ("/metrics", "/live", "/healthz", "/readyz")] == [200] * 4


def test_recorder_recipe_shows_requests(recipes):
    recording = f"{recipes.folder}/recording"
    server = recipes.serve("Watch slow and failed requests", change=lambda old: old.replace("/var/lib/monkey/recording", recording))
    assert ask(server, "/absent").status == 404
    for command, text in ((["recorder"], " 404 GET example.org/absent "), (["top", "--once", "--last", "1h"], "  example.org\n")):
        done = subprocess.run([PROGRAM, *command, recording], capture_output=True, text=True, env=os.environ | ENVIRONMENT,
                              timeout=SECONDS, check=True)
        assert text in done.stdout


@pytest.mark.parametrize("routes, text", [("", "ok\n"), ("[ROUTES]\n    /* static\n", "the page of the application"),
                                          ("[ROUTES]\n    /healthz metrics health\n    /* static\n", "ok\n")])
def test_health_check_is_served_unless_other_routes_omit_it(recipes, routes, text):
    recipes.file("/srv/www/index.html", "the page of the application")
    server = recipes.serve("Health checks and Prometheus", change=lambda old: f"{old}    Fallback index.html\n{routes}")
    assert ask(server, "/healthz").text == text


def test_discovery_recipe_takes_servers_from_dns_and_file(recipes):
    with Backend() as app, Backend() as jobs, DnsServer({("app.internal", A): [a("app.internal", "127.0.0.1")]}) as dns:
        server = recipes.serve("Servers from DNS or a file", change=lambda text: text.replace(
            "app.internal:8000", f"app.internal:{app.at[1]}").replace("10.0.0.53", dns.address))
        recipes.file("/etc/monkey/jobs/servers", f"{jobs.address}\n")
        wait_until(lambda: ask(server, "/jobs/1").status == 200, "the server of the file")
        assert ask(server, "/").status == 200 and app.requests and jobs.requests


def test_configuration_translated_from_nginx_behaves_the_same(recipes):
    for name in ("www/index.html", "www/a.css", "www/.git/config", "docs/a"):
        recipes.file(f"/srv/{name}", name * 200)
    server = recipes.serve("An nginx configuration, line by line", page=ROOT / "docs/guide/coming-from.md")
    assert [ask(server, path).status for path in ("/health", "/archive/7/a", "/.git/config", "/a.js")] == [200, 410, 403, 404]
    assert ask(server, "/some/page").text == ask(server, "/").text == "www/index.html" * 200
    assert ask(server, "/docs/a", host="www.example.org").text == "docs/a" * 200
    style = ask(server, "/a.css", fields=[("Accept-Encoding", "gzip")])
    assert (style["Cache-Control"], style["Content-Encoding"]) == ("max-age=2592000", "gzip")
    server.stop()
    log = (recipes.folder / "var/log/monkey/example.log").read_text()
    assert "/archive/7/a" in log and "/health" not in log


def test_recipe_of_confirmed_reload_returns_to_old_configuration(recipes, tmp_path):
    recipes.file("/srv/www/index.html", "old")
    recipes.file("/srv/new/index.html", "new")
    server = recipes.serve("Change a remote server without locking yourself out",
                           change=lambda text: text.replace("Load cheetah", f"Load cheetah\n[CHEETAH]\n    Socket {tmp_path}/sock"))
    server.config = tmp_path / "monkey.conf"
    path = next(path for path in tmp_path.glob("*.conf") if "CHEETAH" in path.read_text())
    path.write_text(path.read_text().replace("srv/www", "srv/new"))
    subprocess.run([PROGRAM, "reload", "-s", tmp_path / "sock", "--confirm", "1s"], check=True, timeout=SECONDS)
    assert ask(server, "/").text == "new"
    wait_until(lambda: ask(server, "/").text == "old", "the old configuration")
