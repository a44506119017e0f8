# SPDX-License-Identifier: Apache-2.0
"""What a handler can read from its request: query parameters, headers, host, scheme, URL and client address."""
import pytest

import services

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>

static int tags(struct duda_ctx *d)
{
    mk_str tag;
    size_t at = 0;
    while (duda_query_next(d, "tag", &at, &tag))
        duda_printf(d, "[%s]", tag.p);
    return duda_query_next(d, "tag", &at, &tag) ? 500 : duda_puts(d, "\n");
}

static int all(struct duda_ctx *d)
{
    mk_str name, value;
    for (size_t i = 0; duda_query_at(d, i, &name, &value); i++)
        duda_printf(d, "[%s=%s]", name.p, value.p);
    return duda_puts(d, "\n");
}

static int headers(struct duda_ctx *d)
{
    mk_str name, value;
    for (size_t i = 0; duda_header_at(d, i, &name, &value); i++)
        duda_printf(d, "%s: %s\n", name.p, value.p);
    return 0;
}

static int url(struct duda_ctx *d)
{
    mk_str full = duda_request_url(d), host = duda_host(d);
    return duda_printf(d, "%s %s %s %s\n", duda_client_ip(d).p, duda_scheme(d).p, host.p ? host.p : "none", full.p ? full.p : "none");
}

static int count(struct duda_ctx *d)
{
    int64_t a = -1, b = -1;
    bool has_a = duda_query_int(d, "a", &a), has_b = duda_query_int_or(d, "b b", 5, &b);
    return duda_printf(d, "%d %lld %d %lld\n", has_a, (long long)a, has_b, (long long)b);
}

DUDA_SERVICE(reads, DUDA_GET("/count", count), DUDA_GET("/tags", tags), DUDA_GET("/all", all), DUDA_GET("/headers", headers), DUDA_GET("/url/:name", url));
"""


def prepare(monkey, site):
    monkey(plugins=[services.build(site.path.parent, "reads", SOURCE)], sections="[ROUTES]\n    /shop/* reads\n")


def prepare_isolated(monkey, site):
    service = services.build(site.path.parent, "reads", SOURCE)
    monkey(plugins=["isolate"], top=f"[ISOLATE]\n    Service {service}\n    Name reads\n", sections="[ROUTES]\n    /shop/* isolate reads\n")


@pytest.fixture(params=["inside", "isolated"])
def server(lasting, request):
    return lasting(prepare if request.param == "inside" else prepare_isolated)


@pytest.mark.parametrize("query, text", [
    ("tag=a&tag=b", "[a][b]"),
    ("tag=a", "[a]"),
    ("", ""),
    ("?", ""),
    ("tag", "[]"),
    ("tag=&tag", "[][]"),
    ("x=1&t%61g=a+b&&tag=%26", "[a b][&]"),
    ("tags=1&atag=2&TAG=3", ""),
    ("tag=%zz", "[%zz]"),
    ("tag=%41+%4", "[%41 %4]"),
    ("tag=%4&tag=%", "[%4][%]"),
    ("tag%=1&ta=2&tagg=3&tag=4&%74a%67=5&t+g=6&tag%00=7", "[4][5]"),
])
def test_repeated_query_parameter_has_several_values(server, query, text):
    assert server.get(f"/shop/tags?{query}").text == text + "\n"


@pytest.mark.parametrize("query, text", [
    ("", "0 -1 1 5"),
    ("a=12&b+b=-7", "1 12 1 -7"),
    ("a=%31%32&b%20b=%2d7", "1 12 1 -7"),
    ("a=&b+b=", "0 -1 0 -1"),
    ("a=1+&b+b=%zz", "0 -1 0 -1"),
    ("aa=1&b=2&a=9223372036854775808&b+b=9223372036854775807", "0 -1 1 9223372036854775807"),
])
def test_query_parameter_is_parsed_as_a_number(server, query, text):
    assert server.get(f"/shop/count?{query}").text == text + "\n"


@pytest.mark.parametrize("query, text", [
    ("a=1&b=2&a=3", "[a=1][b=2][a=3]"),
    ("", ""),
    ("&&a&=x", "[a=][=x]"),
    ("a+b=c%3Dd", "[a b=c=d]"),
])
def test_all_query_parameters_are_listed(server, query, text):
    assert server.get(f"/shop/all?{query}").text == text + "\n"


def test_all_headers_are_listed(server):
    lines = server.get("/shop/headers", fields=[("X-One", "1"), ("X-Two", "a"), ("X-Two", "b")]).text.splitlines()
    named = [line.lower() for line in lines if line.lower().startswith("x-") and not line.lower().startswith("x-request-id:")]
    assert named == ["x-one: 1", "x-two: a", "x-two: b"]
    assert any(line.lower().startswith("host: ") for line in lines)
    assert not any("monkey-" in line.lower() for line in lines)


def test_url_is_that_of_the_client(server):
    answer = server.get("/shop/url/a%20b?x=%2f", fields=[("Host", "example.org:8443")])
    assert answer.text == f"127.0.0.1 {'https' if server.url.startswith('https') else 'http'} example.org http://example.org:8443/shop/url/a%20b?x=%2f\n"


@pytest.mark.parametrize("server", ["inside"], indirect=True)
def test_url_without_a_host_is_absent(server):
    with server.connect(protocol="h1") as client:
        client.send(b"GET /shop/url/a HTTP/1.0\r\n\r\n")
        assert client.read_to_end().endswith(b"127.0.0.1 http none none\n")
