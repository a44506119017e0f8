# SPDX-License-Identifier: Apache-2.0
"""Templates and URLs outside of requests: in background tasks, start tasks and jobs, with `PublicUrl` of [DUDA]."""
import pytest

import services
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <duda/task.h>
#include <stdio.h>
#include <string.h>

static char last[4000] = "none";

static int render(struct duda_ctx *d, const char *name, unsigned flags)
{
    mk_str text;
    int e = duda_render_to_string(d, name, duda_value_members({"id", duda_value_integer(7)}, {"name", duda_value_cstr("a&b")}), flags, &text);
    snprintf(last, sizeof last, "%d %s", -e, e ? "" : text.p);
    return 0;
}

static int url(struct duda_ctx *d)
{
    mk_str url = duda_url_for(d, "item", duda_value_members({"id", duda_value_integer(7)}, {"q", duda_value_cstr("x&y")}));
    mk_str home = duda_absolute_url(d, MK_STR("/x?y=1")), asset = duda_asset_url(d, MK_STR("app.css"));
    mk_str mounted = duda_mount_url(d, MK_STR("/manual")), other = duda_absolute_url(d, MK_STR("https://other.example/"));
    snprintf(last, sizeof last, "%s %s %s %s %s", url.p ? url.p : "-", home.p ? home.p : "-", asset.p ? "asset" : "-",
             mounted.p ? mounted.p : "-", other.p);
    return 0;
}

static int in_task(struct duda_ctx *d)
{
    const char *what = duda_task_context(d);
    return !strcmp(what, "url") ? url(d) : render(d, what, 0);
}

static int mail(struct duda_ctx *d)
{
    char what[100];
    snprintf(what, sizeof what, "%s", duda_query_or(d, "what", "mail.txt"));
    snprintf(last, sizeof last, "running");
    int e = duda_after_response(d, in_task, what, sizeof what);
    return e ? e : 204;
}

static int now(struct duda_ctx *d)
{
    int64_t flags = 0;
    (void)duda_query_int(d, "flags", &flags);
    int e = !strcmp(duda_query_or(d, "what", ""), "url") ? url(d) : render(d, duda_query_or(d, "what", ""), (unsigned)flags);
    return e ? e : duda_puts(d, last);
}

static int result(struct duda_ctx *d) { return duda_puts(d, last); }
static int item(struct duda_ctx *d) { return duda_puts(d, "item\n"); }

DUDA_SERVICE(mails, DUDA_ASSETS("/static"), DUDA_GET("/mail", mail), DUDA_GET("/now", now), DUDA_GET("/result", result), DUDA_GET("/items/:id", item));
"""
TEMPLATES = {"mail.txt": "Hi {{name}}: {{url_for \"item\" id=id q=name n=1}}{{#@user}} as {{@user}}{{/@user}}{{@csrf_token}}{{#@flash}}!{{/@flash}}",
             "page.html": "<a href=\"{{url_for \"item\" id=id q=name}}\">", "plain.txt": "{{id}}{{>inner.txt}}", "inner.txt": " inner",
             "nested.txt": "{{>mail.txt}}", "wrong.txt": "{{url_for \"item\"}}"}


@pytest.fixture
def mails(monkey, tmp_path):
    (tmp_path / "templates").mkdir()
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "app.css").write_text("p {}")
    for name, text in TEMPLATES.items():
        (tmp_path / "templates" / name).write_text(text)

    def start(*urls, **how):
        values = "".join(f"    PublicUrl {url}\n" for url in urls)
        return monkey(plugins=[services.build(tmp_path, "mails", SOURCE)], top=f"[DUDA]\n{values}", **how)
    return start


def in_task(server, what, at=""):
    assert server.get(f"{at}/mail?what={what}").status == 204
    wait_until(lambda: server.get(f"{at}/result").text not in ("running", "none"), "the task has run")
    return server.get(f"{at}/result").text


def test_task_renders_absolute_urls(mails):
    server = mails("https://www.example.org:8443/")
    item = "https://www.example.org:8443/items/7?q=a%26b"
    assert in_task(server, "mail.txt") == f"0 Hi a&b: {item}&n=1"
    assert in_task(server, "nested.txt") == f"0 Hi a&b: {item}&n=1"
    assert in_task(server, "page.html") == f'0 <a href="{item}">'
    assert in_task(server, "url") == ("https://www.example.org:8443/items/7?q=x%26y https://www.example.org:8443/x?y=1 asset "
                                      "https://www.example.org:8443/manual https://other.example/")
    assert in_task(server, "plain.txt") == "0 7 inner"


def test_request_renders_absolute_urls_on_demand(mails):
    server = mails("https://www.example.org")
    assert server.get("/now?what=page.html").text == '0 <a href="/items/7?q=a%26b">'
    assert server.get("/now?what=page.html&flags=1").text == '0 <a href="https://www.example.org/items/7?q=a%26b">'
    assert server.get("/now?what=url").text == "/items/7?q=x%26y https://www.example.org/x?y=1 asset /manual https://other.example/"
    server.get("/now?what=page.html&flags=1", fields=[("Host", "evil.example")])
    assert "evil" not in server.get("/result").text, "the Host of a client appears in no absolute URL"


def test_absolute_urls_contain_the_mount(mails):
    server = mails("http://one.example mails", "http://two.example/base", sections="[ROUTES]\n    /shop/* mails\n")
    assert in_task(server, "url", "/shop").startswith("http://one.example/shop/items/7?q=x%26y http://one.example/x?y=1 ")
    server = mails("http://two.example/base", "http://one.example other", sections="[ROUTES]\n    /shop/* mails\n")
    assert in_task(server, "page.html", "/shop") == '0 <a href="http://two.example/base/shop/items/7?q=a%26b">'
    assert "no service `other` is loaded" in server.log


@pytest.mark.processes("it starts no group of processes")
def test_isolated_service_has_absolute_urls(monkey, site, tmp_path):
    (tmp_path / "templates").mkdir()
    (tmp_path / "assets").mkdir()
    (tmp_path / "templates" / "page.html").write_text(TEMPLATES["page.html"])
    (tmp_path / "mails.conf").write_text("[DUDA]\n    PublicUrl https://www.example.org\n")
    tmp_path.chmod(0o755)
    server = monkey(plugins=["isolate"], root=None, host=None,
                    top=f"[ISOLATE]\n    Service {services.build(tmp_path, 'mails', SOURCE)}\n    Include mails.conf\n",
                    sections=f"[HOST]\n    DocumentRoot {site}\n[ROUTES]\n    /shop/* isolate mails\n")
    assert in_task(server, "page.html", "/shop") == '0 <a href="https://www.example.org/shop/items/7?q=a%26b">'
    assert server.get("/shop/now?what=page.html&flags=1").text == '0 <a href="https://www.example.org/shop/items/7?q=a%26b">'


def test_task_without_public_url_gets_an_error(mails):
    server = mails()
    assert in_task(server, "mail.txt") == "22 " and in_task(server, "nested.txt") == "22 "
    server.err.wait_for(r"the template contains a URL, which must be absolute here: set PublicUrl of \[DUDA\]", 2)
    assert in_task(server, "plain.txt") == "0 7 inner", "a template without URLs needs no PublicUrl"
    assert in_task(server, "url") == "- - - - https://other.example/"
    server.err.wait_for(r'duda_url_for\("item"\): PublicUrl of \[DUDA\] is not set')
    server.err.wait_for(r"duda_absolute_url\(\): PublicUrl of \[DUDA\] is not set")
    server.err.wait_for(r"no asset `app.css` with an absolute URL: PublicUrl of \[DUDA\] is not set")
    assert server.get("/now?what=page.html").text == '0 <a href="/items/7?q=a%26b">'
    assert server.get("/now?what=page.html&flags=1").text == "22 "
    assert in_task(server, "none.txt") == "22 "
    server.err.wait_for("the service has no template templates/none.txt")


@pytest.mark.parametrize("urls, error", [
    (["www.example.org"], "`www.example.org` is not a URL of a site"), (["ftp://a"], "is not a URL"), (["https://"], "is not a URL"),
    (["https:///x"], "is not a URL"), (["https://a?b"], "is not a URL"), (["https://user@a"], "is not a URL"), (["https://ä"], "is not a URL"),
    (["https://a", "https://b"], "another PublicUrl is already for all services"), (["https://a mails", "https://b mails"], "only one PublicUrl"),
    (["https://a mails mails"], "only one PublicUrl")])
def test_public_url_is_validated(mails, urls, error):
    server = mails(*urls, expect_start=False)
    server.exit_code = 3
    server.wait()
    assert error in server.log
