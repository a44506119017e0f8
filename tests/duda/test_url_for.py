# SPDX-License-Identifier: Apache-2.0
"""duda_url_for(), {{url_for}} in templates, and duda_mount_url(): URLs of routes and paths of a service."""
import re
import shutil

import pytest

import services
from running import cache, runtime, src, start  # pylint: disable=unused-import

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>

static int url(struct duda_ctx *d)
{
    int64_t id;
    mk_str name = duda_query(d, "route");
    const struct duda_entry params[] = {
        {"id", duda_query_int(d, "number", &id) ? duda_value_integer(id) : duda_value_text(duda_query(d, "id"))},
        {"name", duda_value_text(duda_query(d, "name"))},
        {"a b&c=", duda_value_text(duda_query(d, "more"))},
        {"yes", duda_query(d, "yes").p ? duda_value_bool(true) : duda_value_null()},
        {"list", duda_query(d, "list").p ? duda_value_list(NULL, 0) : duda_value_null()},
    };
    mk_str found = duda_url_for(d, name.p, duda_query(d, "none").p ? duda_value_null() : duda_value_map(params, MK_LEN(params)));
    return duda_printf(d, "%s\n", found.p ? found.p : "-");
}

static int item(struct duda_ctx *d) { return duda_printf(d, "item %s\n", duda_param(d, "id").p); }
static int page(struct duda_ctx *d) { return duda_printf(d, "page %s\n", duda_param(d, "name").p); }
static int file(struct duda_ctx *d) { return duda_printf(d, "file %s\n", duda_param(d, "name").p); }
static int twice(struct duda_ctx *d) { return duda_puts(d, "twice\n"); }

DUDA_ROUTES(inner, DUDA_GET("/items/:id<int>", item, "", .url_name = "inner-item"), DUDA_GET("/here", url, "", .url_name = "here"));
DUDA_SERVICE(links, DUDA_GET("/url", url), DUDA_GET("/items/:id<int>", item, "", .url_name = "item"), DUDA_DELETE("/items/:id<int>", item, "", .url_name = "item"),
             DUDA_GET("/pages/:name", page), DUDA_GET("/files/*name", file), DUDA_GET("/", twice, "", .url_name = "home"),
             DUDA_GET("/one", twice), DUDA_GET("/two", twice), DUDA_GROUP("/in/:name", inner));
"""


@pytest.fixture
def links(monkey, tmp_path):
    def start(**how):
        return monkey(plugins=[services.build(tmp_path, "links", SOURCE)], **how)
    return start


def url(server, route, path="/url", **query):
    return server.get(f"{path}?route={route}" + "".join(f"&{name}={value}" for name, value in query.items())).text.strip()


def test_url_for_fills_in_and_escapes_parameters(links):
    server = links()
    assert url(server, "item", number=7) == "/items/7"
    assert url(server, "item", id="007") == "/items/007"
    assert url(server, "home") == "/"
    assert url(server, "page", name="a%20b%3F%23%25%26%C3%A4") == "/pages/a%20b%3F%23%25%26%C3%A4"
    assert url(server, "file", name="a/b%20c.txt") == "/files/a/b%20c.txt"
    assert url(server, "inner-item", number=7, name="shop") == "/in/shop/items/7"
    assert url(server, "home", more="x%2Fy%26z", yes=1) == "/?a%20b%26c%3D=x%2Fy%26z&yes=true"
    assert url(server, "page", name="%0D%0ASet-Cookie:%20x") == "/pages/%0D%0ASet-Cookie%3A%20x"
    assert url(server, "home", none=1) == "/"


def test_url_for_returns_urls_that_lead_to_the_route(links):
    server = links()
    assert server.get(url(server, "page", name="a%20b%3F%25")).text == "page a b?%\n"
    assert server.get(url(server, "file", name="x/y%3Fz")).text == "file x/y?z\n"
    assert server.get(url(server, "item", number=7)).text == "item 7\n"


def test_encoded_slash_in_a_segment_stays_encoded(links):
    server = links()
    for path in ("/pages/a%2Fb", "/pages/a%252Fb"):
        assert server.get(path).text == "page a%2Fb\n"
    assert server.get("/files/a/b").text == "file a/b\n"


@pytest.mark.parametrize("route, query", [("none", {}), ("twice", {}), ("item", {}), ("item", {"id": "x"}), ("item", {"id": "1x"}), ("item", {"id": ""}),
                                          ("page", {"name": ".."}), ("page", {"name": "."}), ("page", {"name": "a/b"}), ("page", {"name": ""}),
                                          ("page", {"name": "a%00b"}), ("file", {"name": "../x"}), ("file", {"name": "a/../x"}), ("file", {"name": "/x"}),
                                          ("file", {"name": "a//x"}), ("home", {"list": 1}), ("item", {"none": 1})], ids=str)
def test_url_for_rejects_what_does_not_match(links, route, query):
    server = links()
    server.allow("duda_url_for")
    assert url(server, route, **query) == "-"
    server.err.wait_for(f'duda_url_for."{route}".: ')


def test_url_for_contains_the_prefix_of_the_mount(links):
    server = links(sections="[ROUTES]\n    /shop/* links\n")
    assert url(server, "item", "/shop/url", number=7) == "/shop/items/7"
    assert url(server, "home", "/shop/in/x/here") == "/shop/"
    assert server.get(url(server, "item", "/shop/url", number=7)).text == "item 7\n"


def test_same_url_name_of_different_patterns_is_an_error_at_startup(monkey, tmp_path):
    source = '#include <duda.h>\nstatic int f(struct duda_ctx *d) { return duda_puts(d, ""); }\n' \
             'DUDA_SERVICE(odd, DUDA_GET("/a", f, "", .url_name = "x"), DUDA_POST("/a", f, "", .url_name = "x"),\n' \
             'DUDA_GET("/b", f, "", .url_name = "x"));\n'
    server = monkey(plugins=[services.build(tmp_path, "odd", source)], expect_start=False)
    server.exit_code = 3
    server.wait()
    assert re.search(r"odd\.c:4: the route at \S*odd\.c:3 has a different pattern, but the same name `x` for duda_url_for\(\)", server.log), server.log


def test_url_name_that_is_the_name_of_another_handler_is_an_error_at_startup(monkey, tmp_path):
    source = '#include <duda.h>\nstatic int f(struct duda_ctx *d) { return duda_puts(d, ""); }\n' \
             'static int g(struct duda_ctx *d) { return duda_puts(d, ""); }\n' \
             'DUDA_SERVICE(odd, DUDA_GET("/a", f),\nDUDA_GET("/b", g, "", .url_name = "f"));\n'
    server = monkey(plugins=[services.build(tmp_path, "odd", source)], expect_start=False)
    server.exit_code = 3
    server.wait()
    assert re.search(r"odd\.c:5: the route at \S*odd\.c:4 has a different pattern, but the same name `f`", server.log), server.log


USES = """#include <duda.h>
static int item(struct duda_ctx *d)
{
    mk_str name = duda_query(d, "name");
    (void)!duda_url_for(d, "itme", duda_value_null()).len;
    (void)!duda_url_for(d, name.p, duda_value_null()).len;
    (void)!duda_url_for(d, name.len ? "itme" : "metting", duda_value_null()).len;
    (void)!duda_url_for(d, "item", (struct duda_value){.kind = DUDA_VALUE_NULL, .n = 0}).len;
    (void)!duda_url_for(d, "several", duda_value_null()).len;
    return duda_puts(d, "item\\n");
}
static int several(struct duda_ctx *d) { return duda_puts(d, ""); }
DUDA_SERVICE(uses, DUDA_GET("/items/:id", item), DUDA_GET("/a", several), DUDA_GET("/b", several));
"""
USES_WARNINGS = [(5, r'duda_url_for\("itme"\): no route has this name'),
                 (9, r'duda_url_for\("several"\): routes with different patterns have this name, at \S*uses.c:13 and \S*uses.c:13: give them a `.url_name`')]


@pytest.mark.parametrize("compiler", [pytest.param(name, marks=pytest.mark.skipif(not shutil.which(name), reason=f"no {name} here")) for name in ("gcc", "clang")])
@pytest.mark.parametrize("flags", [("-O0",), ("-O2",), ("-O2", "-flto"), ("-std=c11", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Werror")], ids=" ".join)
def test_literal_names_that_no_route_has_are_warned_about_at_load(run, tmp_path, monkeypatch, compiler, flags):
    """Names that are known only at run time are not checked. The service is loaded, because the call may never happen."""
    monkeypatch.setattr(services, "COMPILER", compiler)
    service = services.build(tmp_path, "uses", USES, *flags)
    (tmp_path / "monkey.conf").write_text(f"[PLUGINS]\n    Load {service}\n[HOST]\n    DocumentRoot {tmp_path}\n")
    done = run("-t", "-c", tmp_path / "monkey.conf")
    assert done.code == 0 and done.err.count("duda_url_for") == len(USES_WARNINGS), done.err
    for row, text in USES_WARNINGS:
        assert re.search(rf"warning: \S*uses\.c:{row}: {text}", done.err), done.err
    assert "did you mean `item`?" in done.err


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler here")
def test_monkey_run_shows_a_wrong_route_name_like_a_compiler(start, src):
    (src / "uses.c").write_text(USES)
    server = start(src / "uses.c")
    server.allow("duda_url_for")
    for row, text in USES_WARNINGS:
        server.err.wait_for(rf"(?m)^\S*/src/uses\.c:{row}: warning: {text}")
    (src / "uses.c").write_text(USES.replace('"itme", duda', '"item", duda').replace('"several", duda', '"item", duda'))
    n = server.err.text.count("duda_url_for")
    assert server.get("/a").status == 200 and n == len(USES_WARNINGS)
    assert server.err.text.count("duda_url_for") == n, "the new version has no wrong name"


# ---- Templates ----

PAGES = r"""
#include <duda.h>

static int item(struct duda_ctx *d)
{
    return duda_render(d, "item.html", duda_value_members({"id", duda_value_text(duda_param(d, "id"))},
                                                          {"next", duda_value_text(duda_query(d, "next"))}));
}
static int manual(struct duda_ctx *d) { return duda_redirect(d, 303, duda_mount_url(d, duda_query(d, "to"))); }
DUDA_ROUTES(inner, DUDA_GET("/:id", item, "", .url_name = "item"));
DUDA_SERVICE(pages, DUDA_GROUP("/items", inner), DUDA_GET("/manual", manual), DUDA_GET("/a", manual, "", .url_name = "twice"));
"""
ITEM = '<a href="{{url_for "item" id=id q=next tab="a&b" n=7}}">{{{url_for "manual"}}}</a>'


@pytest.fixture
def pages(monkey, tmp_path):
    def start(template, expect_start=True, **how):
        (tmp_path / "templates").mkdir()
        (tmp_path / "templates/item.html").write_text(template)
        return monkey(plugins=[services.build(tmp_path, "pages", PAGES)], expect_start=expect_start, **how)
    return start


@pytest.mark.parametrize("path, prefix", [("/*", ""), ("/shop/*", "/shop"), ("/ä/*", "/%C3%A4")], ids=str)
def test_template_links_contain_the_prefix_of_the_mount(pages, path, prefix):
    server = pages(ITEM, sections=f"[ROUTES]\n    {path} pages\n")
    assert server.get(f"{prefix}/items/x%3Fy").text == f'<a href="{prefix}/items/x%3Fy?tab=a%26b&amp;n=7">{prefix}/manual</a>'
    assert server.get(f"{prefix}/items/1?next=%22").text == f'<a href="{prefix}/items/1?q=%22&amp;tab=a%26b&amp;n=7">{prefix}/manual</a>'
    for to, wanted in (("/manual/a?b", f"{prefix}/manual/a?b"), ("//other/x", "//other/x"), ("https://other/x", "https://other/x")):
        assert server.get(f"{prefix}/manual?to={to}")["Location"] == wanted


@pytest.mark.parametrize("tag, wanted", [('{{url_for "itme"}}', 'url_for "itme": no route has this name'),
                                         ('{{url_for "item" di=7}}', 'url_for "item": the pattern needs the parameter `id`')], ids=str)
def test_template_links_to_missing_routes_are_warned_about_at_load(pages, tag, wanted):
    server = pages("<p>\n  " + tag)
    server.err.wait_for(re.escape(f"warning: templates/item.html, line 2, column 3: {wanted}"))
    assert "itme" not in tag or "did you mean `item`?" in server.log
    server.allow("url_for")
    assert server.get("/items/1").text == "<p>\n  "


def test_malformed_template_links_are_errors_at_startup(pages):
    server = pages("<p>\n  {{url_for item}}", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "templates/item.html, line 2, column 3: `url_for` needs the name of a route in quotes" in server.log, server.log


def test_template_link_whose_value_does_not_match_is_empty_in_production(pages):
    server = pages('<a href="{{url_for "item" id=next}}">')
    server.allow("url_for")
    assert server.get("/items/1").text == '<a href="">' and server.get("/items/1?next=..").text == '<a href="">'
    server.err.wait_for(r'url_for\("item"\): the pattern does not allow the value of the parameter `id`')
    assert server.get("/items/1?next=2").text == '<a href="/items/2">'


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler here")
def test_monkey_run_shows_the_tag_whose_link_is_wrong(start, src):
    (src / "templates").mkdir()
    (src / "templates/item.html").write_text("<a>\n{{url_for \"item\" id=next}}")
    (src / "pages.c").write_text(PAGES)
    server = start(src / "pages.c")
    server.allow("url_for|item.html")
    assert server.get("/items/1?next=2").text == "<a>\n/items/2"
    assert server.get("/items/1?next=..").status == 500
    server.err.wait_for("item.html, line 2, column 1: `item` has no URL with these parameters")
