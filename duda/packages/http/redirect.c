/* SPDX-License-Identifier: Apache-2.0 */
#include "redirect.h"

#include <duda/memory.h>
#include <errno.h>

#include "url.h"

enum { URL_SHOWN = 200 };

static bool is_redirect(unsigned status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* ---- The location ---- */

static int set_location_error(struct duda_http_stream *stream, int e, mk_str location, const char *problem)
{
    mk_str text = duda_sprintf(stream->d, "the redirect to %.*s: %s",
                               MK_STR_ARG(mk_str_first(location, URL_SHOWN)), problem);
    stream->error_text = text.p ? text.p : problem;
    return e;
}

/* Returns the number of Location headers, and the first one. */
static size_t find_location(const struct duda_http_response *response, mk_str *out)
{
    size_t n = 0;
    for (size_t i = 0; i < response->n_headers; i++)
        if (mk_str_eq_nocase(response->headers[i].name, MK_STR("Location")) && !n++)
            *out = response->headers[i].value;
    return n;
}

static mk_str resolve_location(struct duda_http_stream *stream, const struct http_url *base, mk_str location,
                               const char **problem)
{
    struct mk_buf text = mk_buf_growing(4 * HTTP_URL_MAX);
    *problem = http_url_resolve(base, location, &text);
    mk_str url = *problem ? MK_STR_NULL : duda_strdup(stream->d, mk_buf_str(&text));
    mk_buf_free(&text);
    return url;
}

/* ---- The request ---- */

static bool is_one_of(mk_str name, const char *const *names)
{
    for (; *names; names++)
        if (mk_str_eq_nocase(name, mk_str_from_c(*names)))
            return true;
    return false;
}

/* Removes the headers with these names from the request. The handler's array stays unchanged. */
static int remove_headers(struct duda_ctx *d, struct duda_http_request *request, const char *const *names)
{
    size_t n = 0;
    struct mk_header *kept = duda_alloc(d, (request->n_headers + 1) * sizeof *kept);
    if (!kept)
        return -ENOMEM;
    for (size_t i = 0; i < request->n_headers; i++)
        if (!is_one_of(request->headers[i].name, names))
            kept[n++] = request->headers[i];
    request->headers = kept;
    request->n_headers = n;
    return 0;
}

/* Is the next request a GET without a body? After 301 and 302, only a POST becomes a GET, as in browsers. */
static bool becomes_get(unsigned status, mk_str method)
{
    if (status == 303)
        return !mk_str_eq(method, MK_STR("GET")) && !mk_str_eq(method, MK_STR("HEAD"));
    return (status == 301 || status == 302) && mk_str_eq(method, MK_STR("POST"));
}

static int drop_body(struct duda_ctx *d, struct duda_http_request *request)
{
    static const char *const names[] = {"Content-Type",     "Content-Encoding", "Content-Language",
                                        "Content-Location", "Content-Length",   NULL};
    request->method = MK_STR("GET");
    request->body = request->content_type = MK_STR_NULL;
    return remove_headers(d, request, names);
}

static int drop_credentials(struct duda_ctx *d, struct duda_http_request *request)
{
    static const char *const names[] = {"Authorization", "Cookie", "Proxy-Authorization", NULL};
    return remove_headers(d, request, names);
}

static int redirect_request(struct duda_http_stream *stream, struct duda_http_request *request,
                            unsigned status, const struct http_url *from, const struct http_url *to)
{
    int e = 0;
    request->method = http_stream_method(request, false);
    request->target = MK_STR_NULL;
    if (becomes_get(status, request->method))
        e = drop_body(stream->d, request);
    if (!e && !http_url_has_same_origin(from, to))
        e = drop_credentials(stream->d, request);
    return e;
}

int http_redirect_follow(struct duda_http_stream *stream, struct duda_http_request *request,
                         const struct duda_http_response *response)
{
    struct http_url from, to;
    mk_str location = MK_STR_NULL;
    const char *problem = NULL;
    size_t n = is_redirect(response->status) ? find_location(response, &location) : 0;
    if (!n)
        return 0;
    if (n > 1)
        return set_location_error(stream, -EPROTO, location, "the response has several Location headers");
    if (stream->n_redirects++ == request->max_redirects)
        return set_location_error(stream, -ELOOP, location, "the limit max_redirects is exceeded");
    if (http_url_parse(response->url, &from))
        return set_location_error(stream, -EINVAL, location, "the key Host of the section is not a host");
    mk_str url = resolve_location(stream, &from, location, &problem);
    if (!problem && !url.p)
        return -ENOMEM;
    problem = problem ? problem : http_url_parse(url, &to);
    if (problem)
        return set_location_error(stream, -EPROTO, location, problem);
    if (from.is_https && !to.is_https && !request->allow_downgrade)
        return set_location_error(stream, -EPERM, location, "it leads from https to http");
    request->url = url;
    int e = redirect_request(stream, request, response->status, &from, &to);
    return e ? e : 1;
}
