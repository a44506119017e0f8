# SPDX-License-Identifier: Apache-2.0
"""Routes of services: groups, hosts, middleware that runs before or after handlers, mount paths, and rejected tables."""
import re
import shutil
import signal

import pytest

import services
from scgi_server import Program

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>

static int where(struct duda_ctx *d)
{
    return duda_printf(d, "%s\n", duda_path(d).p);
}

static int number(struct duda_ctx *d)
{
    int64_t n = 0;
    return duda_param_int(d, "id", &n) ? duda_printf(d, "number %lld\n", (long long)n) : 500;
}

static int word(struct duda_ctx *d)
{
    return duda_printf(d, "word %s\n", duda_param(d, "id").p);
}

static int api(struct duda_ctx *d)
{
    return duda_puts(d, "api\n");
}

static int guard(struct duda_ctx *d)
{
    if (!duda_header(d, "X-Pass").p)
        return 403;
    if (mk_str_eq(duda_header(d, "X-Pass"), MK_STR("early")))
        return duda_puts(d, "answered before\n") ? 500 : 200;
    int e = duda_header_set(d, "X-Guard", MK_STR("passed"));
    return e ? e : DUDA_NEXT;
}

static int inner(struct duda_ctx *d)
{
    return duda_header_add(d, "X-After", MK_STR("inner"));
}

static int outer(struct duda_ctx *d)
{
    if (duda_result(d) == 418) {
        duda_set_result(d, 0);
        duda_status(d, 418);
        duda_puts(d, "a teapot\n");
    }
    return duda_header_add(d, "X-After", MK_STR("outer"));
}

static int teapot(struct duda_ctx *d)
{
    duda_puts(d, "dropped");
    duda_response_reset(d);
    return 418;
}

DUDA_ROUTES(deep, DUDA_GET("", where, "The group itself."), DUDA_GET("/:id", word, "In a group of a group."));
DUDA_ROUTES(admin,
    DUDA_BEFORE(guard),
    DUDA_AFTER(inner),
    DUDA_GET("/page", where, "Guarded."),
    DUDA_GROUP("/deep", deep, "Deeper."));
DUDA_SERVICE(second,
    DUDA_GET("/", where, "The root."),
    DUDA_AFTER(outer),
    DUDA_GET("/n/:id<int>", number, "A number."),
    DUDA_GET("/n/:id", word, "A word."),
    DUDA_ROUTE("PUT,PATCH", "/n/:id", word, "Two methods."),
    DUDA_ANY("/any", where, "Any method."),
    DUDA_GET("/teapot", teapot, "Fails."),
    DUDA_GROUP("/admin", admin, "For staff."),
    DUDA_HOST("api.example.org"),
    DUDA_GET("/", api, "The interface."),
    DUDA_HOST("*.other.org"),
    DUDA_GET("/any", api, "Another."));
"""


def prepare(monkey, site):
    site.add("file.txt", "a file")
    monkey(plugins=[services.build(site.path.parent, "second", SOURCE)],
           sections="[HOST]\n    ServerName mounted\n    DocumentRoot site\n")


@pytest.fixture
def server(lasting):
    return lasting(prepare)


def get(server, path, **fields):
    return server.get(path, fields=[(name.replace("_", "-"), value) for name, value in fields.items()])


def test_most_specific_pattern_wins(server):
    assert server.get("/n/-12").text == "number -12\n"
    assert server.get("/n/x%20y").text == "word x y\n"
    assert server.get("/n/a/b").status == 404
    assert server.get("/n/3", method="PATCH").text == "word 3\n"


def test_allow_header_lists_the_methods_of_the_route(server):
    refused = server.get("/n/3", method="DELETE")
    assert refused.status == 405
    assert sorted(refused["Allow"].split(", ")) == ["GET", "HEAD", "OPTIONS", "PATCH", "PUT"]
    options = server.get("/n/3", method="OPTIONS")
    assert (options.status, options["Allow"]) == (204, refused["Allow"])
    assert server.get("/any", method="DELETE").text == "/any\n"


def test_local_redirect_uses_the_get_route(monkey, site):
    """The redirected request is a GET, so it needs no CSRF token."""
    with Program(lambda *_: b"Location: /n/3\n\n") as program:
        server = monkey(plugins=["scgi", services.build(site.path.parent, "second", SOURCE)],
                        sections=f"[ROUTES]\n    /elsewhere scgi {program.address}\n    /* second\n")
        for method in ("GET", "PATCH", "PUT", "POST"):
            assert server.get("/elsewhere", method).text == "number 3\n", method
        assert server.get("/n/3", "PATCH").text == "word 3\n"


def test_middleware_runs_before_and_after_handlers(server):
    assert get(server, "/admin/page").status == 403
    page = get(server, "/admin/page", X_Pass="x")
    assert (page.text, page["X-Guard"], page.all("X-After")) == ("/admin/page\n", "passed", ["inner", "outer"])
    assert get(server, "/admin/page", X_Pass="early").text == "answered before\n"
    assert "X-After" not in server.get("/")
    assert server.get("/n/3").all("X-After") == ["outer"]


def test_middleware_after_may_change_the_result(server):
    answer = server.get("/teapot")
    assert (answer.status, answer.text) == (418, "a teapot\n")


def test_groups_may_be_nested(server):
    assert get(server, "/admin/deep", X_Pass="x").text == "/admin/deep\n"
    assert get(server, "/admin/deep/x", X_Pass="x").text == "word x\n"
    assert get(server, "/admin/deep/x").status == 403


def test_host_selects_the_routes(server):
    assert get(server, "/", Host="api.example.org").text == "api\n"
    assert get(server, "/any", Host="API.example.org").text == "/any\n"
    assert get(server, "/any", Host="a.other.org").text == "api\n"
    assert get(server, "/any", Host="other.org").text == "/any\n"


@pytest.mark.parametrize("table, message", [
    ('DUDA_GET("/a/:x", f, ""),\n\nDUDA_GET("/a/:y", f, "")', [r"third.c:6: .*third.c:4"]),
    ('DUDA_GET("/a/:x<wrong>", f, "")', ["third.c:4: .*wrong"]),
    ('DUDA_GET("/a", f, "", .stack = (8 << 20) + 1)', ["third.c:4: a `.stack` is at most 8 MB"]),
    ('DUDA_GET("a", f, "")', ["third.c:4: a route needs"]),
    ('DUDA_GROUP("/g/", more, ""), DUDA_GROUP("h", more, "")', ["third.c:4: a group needs"]),
])
def test_invalid_route_table_is_rejected_at_startup(monkey, tmp_path, table, message):
    source = "#include <duda.h>\nstatic int f(struct duda_ctx *d) { return duda_puts(d, \"\"); }\n" \
             f"DUDA_ROUTES(more, DUDA_GET(\"/\", f, \"\"));\nDUDA_SERVICE(third, {table}, DUDA_GROUP(\"\", more, \"\"));\n"
    server = monkey(plugins=[services.build(tmp_path, "third", source)], expect_start=False, sections="""
        [ROUTES]
            /third/*  third
        """)
    server.exit_code = 3
    server.wait()
    for pattern in message:
        server.err.wait_for(pattern)
    assert "expects nothing" not in server.err.text, "a rejected service causes no further errors"


def test_server_routes_mount_the_service(monkey, tmp_path, site):
    site.add("n/3", "a file")
    server = monkey(plugins=[services.build(tmp_path, "second", SOURCE)], sections="""
        [ROUTES]
            /shop/*  second
            /*       static
        """)
    assert server.get("/shop/n/3").text == "number 3\n"
    assert server.get("/shop/").text == "/\n"
    assert server.get("/n/3").text == "a file"
    assert server.get("/any").status == 404


TWO = """#include <duda.h>
static int say(struct duda_ctx *d) { return duda_puts(d, "NAME"); }
DUDA_SERVICE(NAME, DUDA_GET("/same/:ID", say, "Says."), DUDA_GET("/NAME", say, "Says."),
             DUDA_HOST("NAME.test"), DUDA_GET("/of-host", say, "Says."));
"""


def build_two(folder):
    return [services.build(folder, name, TWO.replace("NAME", name).replace("ID", number)) for name, number in (("one", "x"), ("two", "y"))]


def test_two_services_with_the_same_route_are_rejected(monkey, run, tmp_path):
    """The message names the handler and source line of both services, at startup and in `monkey -t`."""
    server = monkey(plugins=build_two(tmp_path), expect_start=False)
    server.exit_code = 3
    server.wait()
    output = server.log
    assert "say() of the service one, " in output and "say() of the service two, " in output and "one.c:3" in output and "two.c:3" in output, output
    assert "[ROUTES]" in output and output.count("match the same requests") == 1, output
    done = run("-t", "-c", server.config)
    assert done.code == 3 and "match the same requests" in done.err


def test_two_services_with_the_same_route_on_different_mounts_work(monkey, tmp_path):
    server = monkey(plugins=build_two(tmp_path), sections="[ROUTES]\n    /1/* one\n    /2/* two\n    /* static\n")
    assert [server.get(path).text for path in ("/1/same/a", "/2/same/a")] == ["one", "two"]


def isolate(*objects):
    return "".join(f"[ISOLATE]\n    Service {path}\n" for path in objects)


NEEDS_ISOLATE = pytest.mark.skipif(not (services.OBJECTS / "monkey-isolate.so").exists(), reason="this build has no isolate")


@NEEDS_ISOLATE
@pytest.mark.processes("isolate needs the program")
@pytest.mark.parametrize("isolated", [1, 2], ids=["with a loaded service", "with another isolated service"])
def test_isolated_service_with_the_same_route_as_another_is_rejected(monkey, run, tmp_path, isolated):
    """The process that checks an isolated service reports its routes to the server, which loads no object of that service."""
    objects = build_two(tmp_path)
    server = monkey(plugins=["isolate", *objects[isolated:]], top=isolate(*objects[:isolated]), expect_start=False)
    server.exit_code = 3
    server.wait()
    for output in (server.log, run("-t", "-c", server.config).err):
        assert output.count("match the same requests") == 1, output
        assert re.search(r"say\(\) of the service one, \S*one.c:3", output) and re.search(r"say\(\) of the service two, \S*two.c:3", output), output
        assert re.search(r"separate paths: `/shop/\* (isolate )?two` in \[ROUTES\]", output), output


@NEEDS_ISOLATE
@pytest.mark.processes("isolate needs the program")
def test_isolated_services_with_the_same_route_on_different_mounts_or_hosts_work(monkey, tmp_path):
    one, two = build_two(tmp_path)
    server = monkey(plugins=["isolate"], top=isolate(one, two), sections="[ROUTES]\n    /1/* isolate one\n    /2/* isolate two\n    /* static\n")
    assert [server.get(path).text for path in ("/1/same/a", "/2/same/a")] == ["one", "two"]
    sources = [TWO.replace("NAME", name).replace("ID", "x").replace("DUDA_GET(\"/same", f'DUDA_HOST("{name}.test"), DUDA_GET("/same') for name in ("one", "two")]
    objects = [services.build(tmp_path, name, source) for name, source in zip(("one", "two"), sources)]
    server = monkey(plugins=["isolate"], top=isolate(*objects))
    assert [server.get("/same/a", fields=[("Host", f"{name}.test")]).text for name in ("one", "two")] == ["one", "two"]


@NEEDS_ISOLATE
@pytest.mark.processes("isolate needs the program")
def test_reload_with_an_isolated_service_that_has_the_same_route_keeps_the_old_configuration(monkey, tmp_path):
    one, two = build_two(tmp_path)
    server = monkey(plugins=["isolate"], top=isolate(one))
    server.allow("match the same requests", "configuration")
    text = server.config.read_text()
    server.config.write_text(text + isolate(two))
    server.tell(signal.SIGHUP)
    server.err.wait_for("match the same requests")
    assert server.get("/same/a").text == "one" and server.get("/two").status == 404


OPTIONS = r"""
#include <duda.h>
static int ping(struct duda_ctx *d) { return duda_puts(d, "ping\n"); }
DUDA_ROUTES(group, DUDA_GET("/g", ping, .rate = "1000/second"));
DUDA_SERVICE(options, DUDA_GET("/", ping, .deadline_ms = 500), DUDA_GET("/a", ping, .tags = "x", .url_name = "a"), DUDA_GET("/b", ping),
             DUDA_GET("/c", ping, "Pings.", .deadline_ms = 500), DUDA_GROUP("/in", group, .rate = "10/second"), DUDA_GROUP("/more", group, "More."));
"""


@pytest.mark.parametrize("flags", [("-O2",), ("-std=c11", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror")], ids=" ".join)
@pytest.mark.parametrize("compiler", [pytest.param(name, marks=pytest.mark.skipif(not shutil.which(name), reason=f"no {name} here")) for name in ("gcc", "clang")])
def test_options_need_no_summary(monkey, tmp_path, monkeypatch, compiler, flags):
    monkeypatch.setattr(services, "COMPILER", compiler)
    server = monkey(plugins=[services.build(tmp_path, "options", OPTIONS, *flags)])
    assert [server.get(path).text for path in ("/", "/a", "/b", "/c", "/in/g", "/more/g")] == 6 * ["ping\n"]
    assert server.get("/in/g")["RateLimit-Limit"] == "10"


SLASHES = r"""
#include <duda.h>
static int list(struct duda_ctx *d) { return duda_printf(d, "%s?%s\n", duda_path(d).p, duda_query_or(d, "q", "")); }
static int none(struct duda_ctx *d) { (void)d; return 404; }
static int show_error(struct duda_ctx *d) { return duda_printf(d, "error %u\n", duda_error_status(d)); }
DUDA_ROUTES(items, DUDA_GET("/", list), DUDA_POST("/", list), DUDA_GET("/:id<int>", list), DUDA_GET("/none/", none));
DUDA_ROUTES(shown, DUDA_ERROR(show_error), DUDA_GET("/", list));
DUDA_SERVICE(slashes, DUDA_GROUP("/items", items), DUDA_GROUP("/shown", shown), DUDA_GET("/both", list), DUDA_GET("/both/", none), DUDA_GET("/page", list),
             DUDA_GET("/any/:name", list));
"""


@pytest.mark.parametrize("prefix", ["", "/shop"])
def test_path_without_a_route_redirects_to_the_one_with_another_slash(monkey, site, tmp_path, prefix):
    site.add("any/file/index.html", "static")
    server = monkey(plugins=[services.build(tmp_path, "slashes", SLASHES)], sections=f"[ROUTES]\n    {prefix}/* slashes\n" if prefix else "")

    def ask(path, method="GET"):
        answer = server.get(prefix + path, method, body=b"")
        return answer.status, next(iter(answer.all("Location")), None)

    assert ask("/items") == (308, prefix + "/items/") and ask("/items", "POST") == (308, prefix + "/items/")
    assert ask("/items?q=a%20b&c") == (308, prefix + "/items/?q=a%20b&c")
    assert ask("/page/") == (308, prefix + "/page") and ask("/items/7/") == (308, prefix + "/items/7")
    assert ask("/shown") == (308, prefix + "/shown/"), "before the error handlers"
    assert server.get(prefix + "/shown/x").text == "error 404\n"
    assert ask("/items", "DELETE")[0] in (404, 405) and ask("/items/7/", "POST")[0] in (404, 405)
    assert [ask(path)[0] for path in ("/both", "/both/", "/items/none/", "/items/none", "/nothing", "/nothing/", "/items/x/")] == [200, 404, 404, 308, 404, 404, 404]
    assert server.get(prefix + "/items/").text == "/items/?\n"
    for path in (f"/{prefix}/page/", f"/%2e{prefix}/page/", f"/\\{prefix}/page/"):
        assert not any(re.match(r"/[/\\]", location) for location in server.get(path).all("Location")), path
    if not prefix:
        assert server.get("/any/file/").text == "static", "files take precedence over the redirect"
