# SPDX-License-Identifier: Apache-2.0
"""duda_url_for(): URLs from the names of routes."""
import pytest

import services

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
    assert "odd.c:4: another route with a different pattern has the same `.url_name`" in server.log


def test_ambiguous_name_reports_both_places(monkey, tmp_path):
    """Two files may have a static function of the same name; only duda_url_for() with that name fails."""
    source = """#include <duda.h>
static int list(struct duda_ctx *d)
{
    mk_str url = duda_url_for(d, "list", duda_value_null());
    return duda_redirect(d, 303, url);
}
static int named(struct duda_ctx *d) { return duda_redirect(d, 303, duda_url_for(d, "named", duda_value_null())); }
DUDA_SERVICE(twins, DUDA_GET("/a", list),
             DUDA_GET("/named", named),
             DUDA_GET("/b", list));
"""
    server = monkey(plugins=[services.build(tmp_path, "twins", source)])
    server.allow("duda_url_for")
    assert server.get("/named")["Location"] == "/named"
    assert server.get("/a").status == 500
    server.err.wait_for(r'duda_url_for."list".: routes with different patterns have this name, at \S*twins.c:8 and \S*twins.c:10: give them a `.url_name`')
    assert "the URL of a redirect is absent" not in server.log
