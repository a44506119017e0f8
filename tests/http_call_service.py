# SPDX-License-Identifier: Apache-2.0
"""A Duda service that sends one request with the options of the query: URL, redirects, decompression, time limit."""
from dataclasses import dataclass
from urllib.parse import urlencode

import services

SOURCE = r"""
#define DUDA_USE "duda-http"
#include <duda.h>
#include <duda/http.h>
#include <errno.h>

static unsigned number(struct duda_ctx *d, const char *name)
{
    int64_t n = 0;
    return duda_query_int(d, name, &n) ? (unsigned)n : 0;
}

/* Reads the body in small pieces. */
static int read_pieces(struct duda_ctx *d, struct duda_http_stream *s, struct mk_buf *body)
{
    char piece[777];
    ssize_t n;
    while ((n = duda_http_read(d, s, piece, sizeof piece)) > 0)
        mk_buf_add(body, mk_str_of(piece, (size_t)n));
    return (int)n;
}

static void free_body(void *body)
{
    mk_buf_free(body);
}

static int call(struct duda_ctx *d)
{
    struct mk_header headers[8];
    struct duda_http_request request = {.method = duda_query(d, "method"), .target = duda_query(d, "target"), .url = duda_query(d, "url"),
        .max_redirects = number(d, "redirects"), .timeout_ms = number(d, "timeout"), .decompress = number(d, "decompress"),
        .allow_downgrade = number(d, "downgrade"), .headers = headers};
    struct duda_http_client *http = duda_http_find(d, duda_query_or(d, "to", NULL));
    struct duda_http_response r;
    struct duda_http_stream *s;
    struct mk_buf *pieces = duda_alloc(d, sizeof *pieces);
    mk_str how = mk_str_from_c(duda_query_or(d, "how", "fetch")), body;
    *pieces = (struct mk_buf)mk_buf_growing(64 << 20);
    int e = duda_defer(d, free_body, pieces);
    e = e ? e : duda_read_all(d, 1 << 20, &body);
    if (e)
        return e;
    if (number(d, "deadline"))
        duda_deadline(d, number(d, "deadline"));
    if (body.len) {
        request.body = body;
        request.content_type = MK_STR("text/plain");
    }
    if (duda_query(d, "headers").p) {
        headers[request.n_headers++] = (struct mk_header){MK_STR("Authorization"), MK_STR("Bearer secret")};
        headers[request.n_headers++] = (struct mk_header){MK_STR("Cookie"), MK_STR("a=b")};
        headers[request.n_headers++] = (struct mk_header){MK_STR("X-Kept"), MK_STR("kept")};
        headers[request.n_headers++] = (struct mk_header){MK_STR("Content-Language"), MK_STR("en")};
    }
    if (duda_query(d, "id").p)
        headers[request.n_headers++] = (struct mk_header){MK_STR("x-request-id"), duda_query(d, "id")};
    if (mk_str_eq(how, MK_STR("fetch"))) {
        e = duda_http_fetch(d, http, &request, &r);
    } else {
        if (mk_str_eq(how, MK_STR("open"))) {
            e = duda_http_open(d, http, &request, &r, &s);
        } else {
            e = duda_http_begin(d, http, &request, MK_LENGTH_UNKNOWN, &r, &s);
            e = e ? e : duda_http_write(d, s, MK_STR("piece"));
            e = e < 0 ? e : duda_http_end(d, s);
        }
        e = e ? e : read_pieces(d, s, pieces);
        if (!e)
            r.body = mk_buf_str(pieces);
    }
    if (duda_cancelled(d)) {
        duda_log(d, MK_LOG_WARN, "the handler ends with %d", e);
        return e;
    }
    if (e)
        return duda_printf(d, "%d\n%.*s\n%u\n%.*s\n\n", -e, MK_STR_ARG(r.error), r.status, MK_STR_ARG(r.url));
    mk_str coding = duda_http_header(&r, "Content-Encoding");
    duda_printf(d, "0\n\n%u\n%.*s\n%.*s\n", r.status, MK_STR_ARG(r.url), MK_STR_ARG(coding));
    return duda_write(d, r.body);
}

DUDA_SERVICE(calls, DUDA_ANY("/call", call, "Sends a request.", .stack = 256 << 10));
"""


@dataclass
class Result:
    errno: int
    error: str
    status: int
    url: str
    coding: str
    body: bytes


class Caller:
    def __init__(self, server):
        self.server = server

    def call(self, target=None, body=b"", fields=(), **options):
        """Sends a request with these options of the service."""
        if target:
            options["target"] = target
        reply = self.server.get(f"/call?{urlencode(options)}", method="POST" if body else "GET", body=body, fields=fields)
        assert reply.status == 200, reply.text
        errno, error, status, url, coding, content = reply.body.split(b"\n", 5)
        return Result(int(errno), error.decode(), int(status), url.decode(), coding.decode(), content)


def start(monkey, site, keys, plugins=(), **options):
    """Starts a server with this service and an [HTTP_CLIENT] section with these keys."""
    service = services.build(site.path.parent, "calls", SOURCE, packages=["http"])
    return Caller(monkey(plugins=[*plugins, service], top=f"[HTTP_CLIENT]\n{keys}", server="MaxBodySize 64M", **options))
