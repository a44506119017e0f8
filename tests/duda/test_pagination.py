# SPDX-License-Identifier: Apache-2.0
"""Pages of lists: duda_page_read(), Link headers, duda_url_with_query(), and cursors."""
import base64
import re
import signal

import pytest

import services
from monkey import PROTOCOLS
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")
needs_keys = pytest.mark.skipif(not services.has("seal"), reason="this build has no OpenSSL")

SOURCE = r"""
#include <duda.h>

static int page(struct duda_ctx *d)
{
    int64_t total = -1, next = 0;
    struct duda_page page = {.size = 10, .size_max = duda_query(d, "fixed").p ? 0 : 50};
    int e = duda_page_read(d, &page);
    if (e)
        return e;
    (void)duda_query_int(d, "next", &next);
    if (duda_query_int(d, "total", &total))
        page.total = total;
    page.has_next = next;
    e = duda_page_links(d, &page);
    return e ? e : duda_printf(d, "%lld %lld %lld\n", (long long)page.number, (long long)page.size, (long long)page.offset);
}

static int with(struct duda_ctx *d)
{
    mk_str value = duda_query(d, "value"), url = duda_url_with_query(d, duda_query_or(d, "name", "x"), value);
    return duda_printf(d, "%s\n", url.p ? url.p : "-");
}

static int cursor(struct duda_ctx *d)
{
    mk_str position;
    int e = duda_cursor_read(d, "after", &position);
    if (e)
        return e;
    mk_str next = duda_cursor_new(d, duda_query(d, "position"));
    return duda_printf(d, "%s %s\n", position.p ? position.p : "-", next.p ? next.p : "-");
}

static int links(struct duda_ctx *d)
{
    int e = duda_link_add(d, "next", MK_STR("/a?b=1"));
    e = e ? e : duda_link_add(d, "prev", MK_STR("/c"));
    int bad = duda_link_add(d, "next", MK_STR("/a>b")), absent = duda_link_add(d, "next", MK_STR_NULL),
        rel = duda_link_add(d, "ne xt", MK_STR("/"));
    return e ? e : duda_printf(d, "%d %d %d\n", bad, absent, rel);
}

DUDA_ROUTES(inner, DUDA_GET("/page", page), DUDA_GET("/with", with), DUDA_GET("/cursor", cursor), DUDA_GET("/cursor/:id", cursor));
DUDA_SERVICE(pages, DUDA_GROUP("", inner), DUDA_GROUP("/in", inner), DUDA_GET("/links", links));
"""


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    return services.build(tmp_path_factory.mktemp("pages"), "pages", SOURCE)


@pytest.fixture
def server(monkey, service):
    return monkey(plugins=[service])


def links_of(answer):
    return {rel: target for line in answer.all("Link") for target, rel in re.findall(r'<([^>]+)>; rel="(\w+)"', line)}


@pytest.mark.parametrize("query, numbers, rels", [
    ("", "1 10 0", {}),
    ("next=1", "1 10 0", {"next": 2}),
    ("page=2&next=1", "2 10 10", {"first": 1, "prev": 1, "next": 3}),
    ("page=3&per_page=50", "3 50 100", {"first": 1, "prev": 2}),
    ("total=0", "1 10 0", {"last": 1}),
    ("total=0&next=1", "1 10 0", {"last": 1}),
    ("page=2&total=0", "2 10 10", {"first": 1, "prev": 1, "last": 1}),
    ("total=10", "1 10 0", {"last": 1}),
    ("total=11", "1 10 0", {"next": 2, "last": 2}),
    ("page=2&total=30", "2 10 10", {"first": 1, "prev": 1, "next": 3, "last": 3}),
    ("page=3&total=30&next=1", "3 10 20", {"first": 1, "prev": 2, "last": 3}),
    ("page=77&total=30", "77 10 760", {"first": 1, "prev": 3, "last": 3}),
    ("page=1000000000&per_page=50", "1000000000 50 49999999950", {"first": 1, "prev": 999999999}),
    ("page=1000000000&per_page=50&next=1", "1000000000 50 49999999950", {"first": 1, "prev": 999999999}),
], ids=str)
@pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
def test_page_has_links_to_its_neighbors(server, query, numbers, rels):
    answer = server.get(f"/page?{query}&q=a%20b")
    assert answer.text == numbers + "\n" and list(links_of(answer)) == list(rels)
    assert {rel: int(re.search(r"[?&]page=(\d+)", target)[1]) for rel, target in links_of(answer).items()} == rels
    assert all(target.startswith("/page?") and "q=a%20b" in target for target in links_of(answer).values())
    assert answer.get("X-Total-Count") == (query.partition("total=")[2].partition("&")[0] or None)
    for target in links_of(answer).values():
        assert server.get(target).status == 200


@pytest.mark.parametrize("query", ["page=0", "page=-1", "page=x", "page=1000000001", "page=99999999999999999999", "page=", "per_page=0", "per_page=51",
                                   "per_page=1.5"])
def test_page_rejects_invalid_numbers(server, query):
    answer = server.get("/page?" + query)
    assert answer.status == 400 and answer["Content-Type"] == "application/problem+json" and query.partition("=")[0] in answer.text


def test_page_size_is_fixed_without_a_maximum(server):
    assert server.get("/page?fixed=1&per_page=50").text == "1 10 0\n"


@pytest.mark.parametrize("query, url", [
    ("name=x&value=1", "name=x&value=1&x=1"), ("name=x", "name=x"), ("name=x&x=1", "name=x"), ("name=x&value=2&x=1&y=3&x=4", "name=x&value=2&x=2&y=3"),
    ("name=x&value=a%26b%3Dc%23", "name=x&value=a%26b%3Dc%23&x=a%26b%3Dc%23"), ("name=x&value=%0D%0AX:%20y", "name=x&value=%0D%0AX:%20y&x=%0D%0AX%3A%20y"),
    ("name=x&&value=&x", "name=x&value=&x="), ("name=a+b&value=1&a%20b=7", "name=a+b&value=1&a%20b=1"), ("name=x&%78=5&value=6", "name=x&x=6&value=6"),
    ('name=x&y=<a>"{|}', "name=x&y=%3Ca%3E%22%7B%7C%7D")], ids=str)
def test_url_with_query_replaces_a_parameter(server, query, url):
    assert server.get("/with?" + query).text == f"/with?{url}\n"


@pytest.mark.parametrize("is_isolated", [False, True], ids=["inside", "isolated"])
def test_url_with_query_keeps_the_mount_point(monkey, service, is_isolated):
    if is_isolated:
        server = monkey(plugins=["isolate"], top=f"[ISOLATE]\n    Service {service}\n    Name pages\n", sections="[ROUTES]\n    /shop/* isolate pages\n")
    else:
        server = monkey(plugins=[service], sections="[ROUTES]\n    /shop/* pages\n")
    assert server.get("/shop/in/with?value=1").text == "/shop/in/with?value=1&x=1\n"
    assert links_of(server.get("/shop/page?next=1")) == {"next": "/shop/page?next=1&page=2"}


def test_link_header_rejects_invalid_targets(server):
    answer = server.get("/links")
    assert answer.all("Link") == ['</a?b=1>; rel="next"', '</c>; rel="prev"'] and answer.text == "-22 -22 -22\n"


def new_cursor(server, position, path="/cursor"):
    return server.get(f"{path}?position={position}").text.split()[1]


@needs_keys
@pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
def test_cursor_returns_its_position(server):
    for position in ("1", "1767610000,42", "%C3%A4%20b"):
        cursor = new_cursor(server, position)
        assert re.fullmatch(r"[\w-]+", cursor) and new_cursor(server, position) == cursor
        assert server.get("/cursor?after=" + cursor).text.rpartition(" ")[0] in (position, "ä b")
    assert server.get("/cursor?after=" + new_cursor(server, "x" * 512)).text.startswith("x" * 512 + " ")
    assert new_cursor(server, "x" * 513) == "-" and server.get("/cursor").text.startswith("- ")


@needs_keys
def test_cursor_cannot_be_changed_or_used_elsewhere(server):
    cursor = new_cursor(server, "12")
    raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    assert raw.endswith(b"12")
    other = base64.urlsafe_b64encode(raw[:-1] + b"3").decode().rstrip("=")
    for bad in (other, cursor[:-1], cursor + "A", "", "x", "a" * 5000, cursor.replace(cursor[0], "!"), "+" + cursor[1:], cursor + "=", "%00"):
        assert server.get("/cursor?after=" + bad).status == 400, bad
    assert server.get("/cursor/7?after=" + cursor).status == 400
    assert server.get("/in/cursor?after=" + cursor).status == 400
    assert server.get("/cursor?after=" + cursor + "&after=x").status == 200


@needs_keys
def test_cursor_is_valid_in_other_workers_and_after_a_reload(monkey, service):
    server = monkey(plugins=[service], workers=2)
    cursor = new_cursor(server, "12")
    before = server.workers
    server.tell(signal.SIGHUP)
    wait_until(lambda: not set(before) & set(server.workers), "the workers are new")
    assert {server.get("/cursor?after=" + cursor).text.split()[0] for _ in range(20)} == {"12"}


@needs_keys
def test_cursor_survives_a_restart_with_configured_keys(monkey, service):
    def cursor_of(keys):
        server = monkey(plugins=[service], environment={"DUDA_KEYS": keys})
        return server, new_cursor(server, "12")
    first, second = "k" * 32, "l" * 32
    _, cursor = cursor_of(first)
    rotated, own = cursor_of(f"{second} {first}")
    assert cursor != own and rotated.get("/cursor?after=" + cursor).text.startswith("12 ")
    assert cursor_of(second)[0].get("/cursor?after=" + cursor).status == 400
