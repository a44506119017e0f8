# SPDX-License-Identifier: Apache-2.0
"""The source of a script that another handler runs is never sent, whatever the request."""
import pytest

SECRET = "<?php $password = 'open sesame'; ?>"
HANDLERS = "[HANDLERS]\n    Match /.*\\.php fastcgi\n"
ROUTES = "[ROUTES]\n    *.php  status 403\n    /*     static\n"


@pytest.mark.parametrize("sections,status", [(HANDLERS, 501), (ROUTES, 403)])
def test_index_script_source_is_never_sent(monkey, site, sections, status):
    site.add("index.php", SECRET)
    site.add("blog/index.php", SECRET)
    server = monkey(host="Index index.php index.html", sections=sections)
    for target in ("/blog/index.php", "/blog/", "/blog/?a=b", "/", "/blog//", "/blog/x/../"):
        for method in ("GET", "HEAD"):
            reply = server.get(target, method)
            assert reply.status == status and "sesame" not in reply.text, f"{method} {target}"


def test_fallback_script_source_is_never_sent(monkey, site):
    site.add("app.php", SECRET)
    server = monkey(host="Fallback app.php", sections=ROUTES)
    reply = server.get("/where/ever")
    assert reply.status == 403 and "sesame" not in reply.text


@pytest.mark.parametrize("method", ["POST", "PUT", "OPTIONS"])
def test_index_or_fallback_script_accepts_every_method(monkey, site, method):
    site.add("app.php", SECRET)
    site.add("blog/index.php", SECRET)
    site.add("page.html", "page")
    server = monkey(host="Index index.php\nFallback app.php", sections=ROUTES.replace("403", "418"))
    for target in ("/where/ever", "/blog/", "/sitemap.xml"):
        assert server.get(target, method).status == 418, target
    assert server.get("/page.html", method).status == (200 if method == "OPTIONS" else 405)


def test_fallback_script_handles_all_missing_files(monkey, site):
    site.add("app.php", SECRET)
    site.add("app.html", "page")
    for fallback, status in (("app.php", 403), ("app.html", 404)):
        server = monkey(host=f"Fallback {fallback}", sections=ROUTES)
        assert server.get("/sitemap.xml").status == status


def test_error_page_script_source_is_never_sent(monkey, site):
    site.add("404.php", SECRET)
    server = monkey(sections=ROUTES + "[ERROR_PAGES]\n    404 404.php\n")
    reply = server.get("/nowhere")
    assert reply.status == 404 and "sesame" not in reply.text


def test_index_page_is_served_despite_later_routes(monkey, site):
    site.add("index.html", "hello")
    site.add("404.html", "not here")
    server = monkey(sections="[ROUTES]\n    /   static\n    /*  status 404\n[ERROR_PAGES]\n    404 404.html\n")
    assert server.get("/").text == "hello"
    reply = server.get("/index.html")
    assert reply.status == 404 and reply.text == "not here"


def test_index_first_existing_file_wins(monkey, site):
    site.add("a/index.html", "page")
    site.add("a/index.php", SECRET)
    server = monkey(host="Index index.html index.php", sections=ROUTES)
    assert server.get("/a/").text == "page"
