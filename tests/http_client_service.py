# SPDX-License-Identifier: Apache-2.0
"""A Duda service that sends requests to other servers: buffered, streamed, and as JSON."""

import services

SOURCE = r"""
#define DUDA_USE "duda-http"
#include <duda.h>
#include <duda/http.h>
#include <errno.h>
#include <stdlib.h>

static struct duda_http_client *http(struct duda_ctx *d)
{
    return duda_http_find(d, NULL);
}

static int tell(struct duda_ctx *d, int e, const struct duda_http_response *r)
{
    if (e == -ECANCELED)
        return e;
    if (e < 0)
        return duda_printf(d, "%d %.*s", -e, MK_STR_ARG(r->error));
    duda_printf(d, "%u ", r->status);
    return duda_write(d, r->body);
}

static int64_t number(struct duda_ctx *d, const char *name, int64_t otherwise)
{
    int64_t n = otherwise;
    return duda_query_int(d, name, &n) ? n : otherwise;
}

/* /ask?method=...&target=...&fields=N&long=N; forwards the body */
static int ask(struct duda_ctx *d)
{
    struct mk_header fields[DUDA_HTTP_HEADERS_MAX + 1];
    struct duda_http_request request = {.method = duda_query(d, "method"), .target = duda_query(d, "target"), .headers = fields};
    struct duda_http_response r;
    mk_str content;
    int e = duda_read_all(d, 1 << 20, &content);
    if (e)
        return e;
    if (content.len)
        request.body = content;
    while (request.n_headers < (size_t)number(d, "fields", 0))
        fields[request.n_headers++] = (struct mk_header){MK_STR("X-Field"), MK_STR("x")};
    if (number(d, "long", 0)) {
        size_t n = (size_t)number(d, "long", 0);
        char *p = duda_alloc(d, n);
        memset(p, 'x', n);
        fields[request.n_headers++] = (struct mk_header){MK_STR("X-Long"), mk_str_of(p, n)};
    }
    return tell(d, duda_http_fetch(d, http(d), &request, &r), &r);
}

/* /send?method=...&length=N&pieces=N&size=N&wait=1&deadline=MS: pieces of the letters a, b, c ... */
static int send_pieces(struct duda_ctx *d)
{
    const struct duda_http_request request = {.method = duda_query(d, "method"), .content_type = MK_STR("text/plain")};
    struct duda_http_response r;
    struct duda_http_stream *s = NULL;
    size_t size = (size_t)number(d, "size", 1);
    char *piece = malloc(size + 1);
    int64_t i = 0;
    int e = duda_defer(d, free, piece);
    if (number(d, "deadline", MK_FOREVER))
        duda_deadline(d, (uint32_t)number(d, "deadline", MK_FOREVER));
    e = e ? e : duda_http_begin(d, http(d), &request, number(d, "length", MK_LENGTH_UNKNOWN), &r, &s);
    for (; !e && i < number(d, "pieces", 0); i++) {
        memset(piece, 'a' + (int)(i % 26), size);
        e = duda_http_write(d, s, mk_str_of(piece, size));
        memset(piece, '-', size); /* the library must have copied the piece */
        if (!e && number(d, "wait", 0))
            e = duda_sleep(d, 1);
    }
    if (e > 0) {
        duda_puts(d, "early ");
        if (duda_http_write(d, s, MK_STR("more")) != 1)
            return 500;
    }
    e = e < 0 ? e : duda_http_end(d, s);
    e = e ? e : duda_http_read_all(d, s, &r);
    if (duda_cancelled(d))
        duda_log(d, MK_LOG_WARN, "ended by %d", e);
    else if (e && s && (duda_http_write(d, s, MK_STR("x")) >= 0 || duda_http_end(d, s) >= 0))
        return 500;
    return tell(d, e, &r);
}

/* Forwards the request body. */
static int relay(struct duda_ctx *d)
{
    const struct duda_http_request request = {.method = MK_STR("PUT"), .target = MK_STR("/relayed")};
    struct duda_http_response r;
    struct duda_http_stream *s;
    char buffer[10000];
    ssize_t n = 0;
    int e = duda_http_begin(d, http(d), &request, MK_LENGTH_UNKNOWN, &r, &s);
    while (!e && (n = duda_read(d, buffer, sizeof buffer)) > 0)
        e = duda_http_write(d, s, mk_str_of(buffer, (size_t)n));
    if (n < 0) {
        duda_log(d, MK_LOG_WARN, "the client has left: %d", (int)n);
        return (int)n;
    }
    e = e < 0 ? e : duda_http_end(d, s);
    e = e ? e : duda_http_read_all(d, s, &r);
    return tell(d, e, &r);
}

/* Reads the response to each line before it sends the next line; with flood=1, then sends without reading. */
static int both(struct duda_ctx *d)
{
    const struct duda_http_request request = {.full_duplex = true};
    static char flood[1 << 20];
    struct duda_http_response r;
    struct duda_http_stream *s;
    char buffer[100];
    int e = duda_http_begin(d, http(d), &request, MK_LENGTH_UNKNOWN, &r, &s);
    for (int i = 0; !e && i < 3; i++) {
        ssize_t n = 0;
        e = duda_http_write(d, s, duda_sprintf(d, "line %d\n", i));
        e = e ? e : duda_http_head(d, s);
        if (!e && (n = duda_http_read(d, s, buffer, sizeof buffer)) > 0)
            e = duda_printf(d, "%u %.*s", r.status, (int)n, buffer);
        e = n < 0 ? (int)n : e;
    }
    while (!e && number(d, "flood", 0))
        e = duda_http_write(d, s, mk_str_of(flood, sizeof flood));
    if (e > 0)
        duda_puts(d, "closed ");
    e = e < 0 ? e : duda_http_end(d, s);
    e = e ? e : duda_http_read_all(d, s, &r);
    return tell(d, e, &r);
}

static int misuse(struct duda_ctx *d)
{
    const struct duda_http_request twice = {.body = MK_STR("x")}, get = {.target = MK_STR("/")};
    struct duda_http_response r, other;
    struct duda_http_stream *s, *opened;
    char buffer[1];
    int a = duda_http_begin(d, http(d), &twice, 1, &r, &s);
    int b = duda_http_begin(d, http(d), &get, -2, &r, &s);
    int c = duda_http_begin(d, http(d), &get, 1, &r, &s);
    int e = duda_http_read(d, s, buffer, 1) == -EINVAL && duda_http_open(d, http(d), &get, &other, &opened) == 0 ? 0 : 500;
    int f = duda_http_write(d, opened, MK_STR("x")), g = duda_http_end(d, opened);
    duda_http_close(s);
    int h = duda_http_write(d, s, MK_STR("x"));
    return duda_printf(d, "%d %d %d %d %d %d %d", a, b, c, e, f, g, h);
}

struct rate {
    mk_str of;
    double rate;
};
static const struct duda_schema_field rate_members[] = {DUDA_STRING(struct rate, of, .max_length = 3), DUDA_DOUBLE(struct rate, rate)};
static const struct duda_schema rate_shape = DUDA_SCHEMA(struct rate, rate_members);

/* /json?target=... */
static int json(struct duda_ctx *d)
{
    const struct duda_http_request request = {.target = duda_query(d, "target")};
    struct duda_http_response r;
    struct duda_value value;
    struct rate rate, *rates;
    size_t n = 0;
    int e = duda_http_fetch(d, http(d), &request, &r);
    if (e)
        return tell(d, e, &r);
    if (duda_query(d, "any").p) {
        e = duda_http_json_value(d, &r, &value, NULL);
        return e ? tell(d, e, &r) : duda_send_json(d, value);
    }
    if (duda_query(d, "list").p)
        e = duda_http_json_list(d, &r, &rate_shape, &rates, &n, &(struct mk_json_limits){.items = 7});
    else
        e = duda_http_json(d, &r, &rate_shape, rates = &rate, NULL);
    if (e)
        return tell(d, e, &r);
    for (size_t i = 0; i < (n ? n : 1); i++)
        duda_printf(d, "%.*s=%g ", MK_STR_ARG(rates[i].of), rates[i].rate);
    return 0;
}

/* /post_json?kind=struct|list|map|null|nan|both|begin|deep&type=...&field=...&redirects=N: sends JSON */
static int post_json(struct duda_ctx *d)
{
    const char *kind = duda_query_or(d, "kind", "struct");
    const struct rate rates[] = {{MK_STR("EUR"), 1.5}, {MK_STR("\"\xe4"), 2}};
    const struct duda_entry entries[] = {{"rate", duda_value_struct(&rate_shape, rates)}, {"none", duda_value_null()}};
    const struct mk_header field = {MK_STR("content-type"), duda_query(d, "field")};
    const struct duda_value nan = duda_value_number(0.0 / 0.0);
    struct duda_value deep[MK_JSON_DEPTH_MAX + 9] = {duda_value_integer(1)};
    struct duda_http_request request = {.target = duda_query(d, "target"), .method = duda_query(d, "method"), .headers = &field,
                                        .n_headers = field.value.p != NULL, .content_type = duda_query(d, "type"),
                                        .max_redirects = (unsigned)number(d, "redirects", 0), .json = duda_value_struct(&rate_shape, rates)};
    struct duda_http_response r;
    struct duda_http_stream *s;
    for (size_t i = 1; i < MK_LEN(deep); i++)
        deep[i] = duda_value_list(&deep[i - 1], 1);
    if (!strcmp(kind, "list"))
        request.json = duda_value_structs(&rate_shape, rates, 2);
    else if (!strcmp(kind, "map"))
        request.json = duda_value_map(entries, 2);
    else if (!strcmp(kind, "null"))
        request.json = duda_value_null();
    else if (!strcmp(kind, "nan"))
        request.json = duda_value_list(&nan, 1);
    else if (!strcmp(kind, "deep"))
        request.json = deep[MK_LEN(deep) - 1];
    else if (!strcmp(kind, "both"))
        request.body = MK_STR("{}");
    else if (!strcmp(kind, "begin"))
        return tell(d, duda_http_begin(d, http(d), &request, 1, &r, &s), &r);
    return tell(d, duda_http_fetch(d, http(d), &request, &r), &r);
}

DUDA_SERVICE(asks,
    DUDA_GET("/post_json", post_json, "Sends JSON."),
    DUDA_ANY("/ask", ask, "Asks.", .stack = 256 << 10), DUDA_GET("/send", send_pieces, "Sends."), DUDA_PUT("/relay", relay, "Forwards the body."),
    DUDA_GET("/both", both, "Both ways."), DUDA_GET("/misuse", misuse, "Wrong calls."), DUDA_GET("/json", json, "JSON."));
"""


def start(monkey, site, address, keys="", top="", plugins=()):
    """Starts a server with this service. It sends requests to `address`, which may be the name of an [UPSTREAM] in `top`."""
    service = services.build(site.path.parent, "asks", SOURCE, packages=["http"])
    return monkey(plugins=[*plugins, service], top=f"{top}[HTTP_CLIENT]\n    Server {address}\n{keys}", server="MaxBodySize 64M")
