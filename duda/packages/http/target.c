/* SPDX-License-Identifier: Apache-2.0 */
#include "target.h"

#include <duda/memory.h>
#include <errno.h>
#include <monkey/mem.h>
#include <string.h>

enum { URL_SHOWN = 200 };

/* Appends "http://HOST" of the section's Server. */
static void add_server_origin(const struct duda_http_client *http, struct mk_buf *out)
{
    mk_buf_add(out, mk_upstream_is_tls(http->upstream) ? MK_STR("https://") : MK_STR("http://"));
    mk_buf_add(out, http->host);
}

static bool is_allowed(const struct duda_http_client *http, const struct http_url *url)
{
    for (size_t i = 0; i < http->n_allowed; i++)
        if (http_allow_matches(&http->allowed[i], url))
            return true;
    return false;
}

/* Returns why the client may not send requests to this URL. */
static const char *explain_denial(struct duda_http_stream *stream, const struct http_url *url)
{
    struct http_url other = *url;
    other.port = url->is_https ? 443 : 80;
    mk_str text = MK_STR_NULL;
    if (is_allowed(stream->http, &other))
        text =
            duda_sprintf(stream->d,
                         "AllowHosts permits the host only with the port %u: an entry with the port, such as "
                         "`%s:%u`, permits this one",
                         (unsigned)other.port, url->host, (unsigned)url->port);
    return text.p ? text.p : "it belongs neither to Server nor to AllowHosts of the section";
}

/* Selects the upstream for a URL outside of Server. In `monkey test`, the fake server of the section receives
 * the request. */
static int find_allowed_host(struct duda_http_stream *stream, const struct http_url *url,
                             struct http_target *out)
{
    struct duda_http_client *http = stream->http;
    out->host = duda_strdup(stream->d, mk_str_from_c(url->authority));
    out->upstream = http->is_faked ? http->upstream : url->is_https ? http->https_hosts : http->http_hosts;
    if (!out->host.p)
        return -ENOMEM;
    if (http->is_faked)
        return 0;
    size_t len = strlen(url->host);
    stream->host = mk_mem_alloc(len + 1);
    if (!stream->host)
        return -ENOMEM;
    memcpy(stream->host, url->host, len + 1);
    out->dynamic_host = mk_str_of(stream->host, len);
    out->dynamic_port = url->port;
    return 0;
}

/* Is the URL one of the section's Server? */
static bool is_on_server(const struct duda_http_client *http, const struct http_url *url)
{
    char buf[HTTP_URL_HOST_MAX + 32];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    struct http_url server;
    if (!http->server.len)
        return false;
    add_server_origin(http, &text);
    return !text.failed && !http_url_parse(mk_buf_str(&text), &server) &&
           http_url_has_same_origin(url, &server);
}

static int set_target_error(struct duda_http_stream *stream, int e, mk_str url, const char *problem)
{
    mk_str text =
        duda_sprintf(stream->d, "the URL %.*s: %s", MK_STR_ARG(mk_str_first(url, URL_SHOWN)), problem);
    stream->error_text = text.p ? text.p : problem;
    return e;
}

/* Copies the URL to the memory of the handler, in its normal form. */
static mk_str copy_url(struct duda_ctx *d, const struct http_url *url)
{
    struct mk_buf text = mk_buf_growing(2 * HTTP_URL_MAX);
    http_url_write(url, &text);
    mk_str copy = text.failed ? MK_STR_NULL : duda_strdup(d, mk_buf_str(&text));
    mk_buf_free(&text);
    return copy;
}

static int find_for_url(struct duda_http_stream *stream, mk_str text, struct http_target *out)
{
    struct http_url url;
    const char *problem = http_url_parse(text, &url);
    if (problem)
        return set_target_error(stream, -EINVAL, text, problem);
    bool is_server = is_on_server(stream->http, &url);
    if (!is_server && !is_allowed(stream->http, &url))
        return set_target_error(stream, -EPERM, text, explain_denial(stream, &url));
    out->url = copy_url(stream->d, &url);
    if (!out->url.p)
        return -ENOMEM;
    out->target =
        mk_str_skip(out->url, strlen(url.is_https ? "https://" : "http://") + strlen(url.authority));
    if (!is_server)
        return find_allowed_host(stream, &url, out);
    out->upstream = stream->http->upstream;
    out->host = stream->http->host;
    return 0;
}

static int find_for_target(struct duda_http_stream *stream, mk_str target, struct http_target *out)
{
    const struct duda_http_client *http = stream->http;
    if (target.p && (!target.len || target.p[0] != '/'))
        return -EINVAL;
    if (!http->upstream) {
        stream->error_text = "the section has no Server: the request needs a URL";
        return -EINVAL;
    }
    out->target = target.p ? target : MK_STR("/");
    out->upstream = http->upstream;
    out->host = http->host;
    out->url = duda_sprintf(stream->d, "%s://%.*s%.*s", mk_upstream_is_tls(http->upstream) ? "https" : "http",
                            MK_STR_ARG(http->host), MK_STR_ARG(out->target));
    return out->url.p ? 0 : -ENOMEM;
}

int http_target_find(struct duda_http_stream *stream, const struct duda_http_request *request,
                     struct http_target *out)
{
    *out = (struct http_target){.upstream = NULL};
    mk_mem_free(stream->host);
    stream->host = NULL;
    if (!request->url.p)
        return find_for_target(stream, request->target, out);
    return request->target.p ? -EINVAL : find_for_url(stream, request->url, out);
}
