/* SPDX-License-Identifier: Apache-2.0 */
/* Accessors of the request. */

#include <monkey/upstream.h>

#include "service/url.h"

struct mk_request *duda_request(struct duda_ctx *d)
{
    return d->request;
}

struct mk_response *duda_response(struct duda_ctx *d)
{
    return d->response;
}

struct mk_worker *duda_worker(struct duda_ctx *d)
{
    return d->worker_ctx->worker;
}

/* The server's string is a slice of the raw request headers: other headers, such as Cookie and Authorization,
 * follow it. A copy is therefore needed to add the NUL. */
static mk_str copy_or_null(struct duda_ctx *d, mk_str text)
{
    return text.p ? duda_strdup(d, text) : MK_STR_NULL;
}

mk_str duda_method(struct duda_ctx *d)
{
    return d->request ? duda_strdup(d, mk_request_method_name(d->request)) : MK_STR_NULL;
}

mk_str duda_path(struct duda_ctx *d)
{
    return copy_or_null(d, d->path);
}

mk_str duda_header_view(struct duda_ctx *d, const char *name)
{
    return d->request ? mk_request_header(d->request, mk_str_from_c(name)) : MK_STR_NULL;
}

mk_str duda_header(struct duda_ctx *d, const char *name)
{
    return copy_or_null(d, duda_header_view(d, name));
}

/* Is it a header that `isolate` has added for its own process? */
static bool is_internal_header(mk_str name)
{
    return mk_str_eq_nocase(name, MK_STR(MK_LOCAL_BACKEND_CLIENT)) ||
           mk_str_eq_nocase(name, MK_STR(MK_LOCAL_BACKEND_BODY_MAX)) ||
           mk_str_eq_nocase(name, MK_STR(MK_LOCAL_BACKEND_SIGNATURE));
}

bool duda_header_at(struct duda_ctx *d, size_t i, mk_str *name, mk_str *value)
{
    mk_str raw_name, raw_value;
    for (size_t at = 0; d->request && mk_request_header_at(d->request, at, &raw_name, &raw_value); at++) {
        if (is_internal_header(raw_name) || i-- > 0)
            continue;
        *name = duda_strdup(d, raw_name);
        *value = duda_strdup(d, raw_value);
        return true;
    }
    return false;
}

mk_str duda_host(struct duda_ctx *d)
{
    return d->request ? copy_or_null(d, mk_request_host(d->request)) : MK_STR_NULL;
}

mk_str duda_scheme(struct duda_ctx *d)
{
    return d->request ? copy_or_null(d, mk_request_scheme(d->request)) : MK_STR_NULL;
}

mk_str duda_request_url(struct duda_ctx *d)
{
    mk_str authority = duda_header_view(d, "Host");
    if (!d->request || !authority.len)
        return MK_STR_NULL;
    return duda_sprintf(d, "%.*s://%.*s%.*s", MK_STR_ARG(mk_request_scheme(d->request)),
                        MK_STR_ARG(authority), MK_STR_ARG(mk_request_uri(d->request)));
}

mk_str duda_client_ip(struct duda_ctx *d)
{
    return d->request ? duda_strdup(d, mk_request_client_text(d->request)) : MK_STR_NULL;
}

/* ---- Request ID ---- */

mk_str duda_request_id(struct duda_ctx *d)
{
    return d->request ? mk_request_id(d->request) : d->id;
}

/* ---- Parameters ---- */

mk_str duda_param(struct duda_ctx *d, const char *name)
{
    for (size_t i = 0; i < d->n_params; i++)
        if (mk_str_eq(d->params[i].name, mk_str_from_c(name)))
            return d->params[i].value;
    return MK_STR_NULL;
}

bool duda_param_int(struct duda_ctx *d, const char *name, int64_t *out)
{
    return mk_num_parse_int(duda_param(d, name), out);
}

/* ---- Query ---- */

/* Decodes a name or value in form encoding; returns it unchanged if its escapes are invalid. */
static mk_str decode_query_component(struct duda_ctx *d, mk_str text)
{
    char *plain = duda_alloc(d, text.len + 1), *buf = duda_alloc(d, text.len + 1);
    if (!plain || !buf)
        return MK_STR_NULL;
    for (size_t i = 0; i < text.len; i++)
        plain[i] = (char)(text.p[i] == '+' ? ' ' : text.p[i]);
    plain[text.len] = '\0';
    struct mk_buf out = mk_buf_fixed(buf, text.len);
    if (!mk_url_unescape(&out, mk_str_of(plain, text.len)))
        return mk_str_of(plain, text.len);
    buf[out.len] = '\0';
    return mk_buf_str(&out);
}

/* Splits the next pair off `rest`, which becomes absent after the last one. */
static void split_query_pair(mk_str *rest, mk_str *key, mk_str *value)
{
    mk_str pair = mk_str_cut(rest, '&');
    *key = mk_str_cut(&pair, '=');
    *value = pair.p ? pair : MK_STR("");
}

static bool is_query_key(struct duda_ctx *d, mk_str key, mk_str expected)
{
    bool is_plain = mk_str_find(key, '%') == MK_STR_NONE && mk_str_find(key, '+') == MK_STR_NONE;
    return mk_str_eq(is_plain ? key : decode_query_component(d, key), expected);
}

bool duda_query_pair_has_name(struct duda_ctx *d, mk_str pair, mk_str name)
{
    return is_query_key(d, mk_str_cut(&pair, '='), name);
}

bool duda_query_next(struct duda_ctx *d, const char *name, size_t *at, mk_str *value)
{
    mk_str query = d->request ? mk_request_query(d->request) : MK_STR_NULL, expected = mk_str_from_c(name),
           key, raw;
    mk_str rest = *at <= query.len ? mk_str_skip(query, *at) : MK_STR_NULL;
    while (rest.p) {
        split_query_pair(&rest, &key, &raw);
        *at = rest.p ? (size_t)(rest.p - query.p) : query.len + 1;
        if (is_query_key(d, key, expected)) {
            *value = decode_query_component(d, raw);
            return true;
        }
    }
    return false;
}

bool duda_query_at(struct duda_ctx *d, size_t i, mk_str *name, mk_str *value)
{
    mk_str rest = d->request ? mk_request_query(d->request) : MK_STR_NULL, key, raw;
    while (rest.p) {
        split_query_pair(&rest, &key, &raw);
        if ((key.len == 0 && raw.len == 0) || i-- > 0) /* an empty pair, as in "a&&b", is not a parameter */
            continue;
        *name = decode_query_component(d, key);
        *value = decode_query_component(d, raw);
        return true;
    }
    return false;
}

mk_str duda_query(struct duda_ctx *d, const char *name)
{
    mk_str rest = d->request ? mk_request_query(d->request) : MK_STR_NULL, key, raw;
    while (rest.p) {
        split_query_pair(&rest, &key, &raw);
        if (is_query_key(d, key, mk_str_from_c(name)))
            return decode_query_component(d, raw);
    }
    return MK_STR_NULL;
}

const char *duda_query_or(struct duda_ctx *d, const char *name, const char *otherwise)
{
    mk_str value = duda_query(d, name);
    return value.p && !memchr(value.p, '\0', value.len) ? value.p : otherwise;
}

bool duda_query_int(struct duda_ctx *d, const char *name, int64_t *out)
{
    return mk_num_parse_int(duda_query(d, name), out);
}

bool duda_query_int_or(struct duda_ctx *d, const char *name, int64_t fallback, int64_t *out)
{
    mk_str value = duda_query(d, name);
    if (value.p)
        return mk_num_parse_int(value, out);
    *out = fallback;
    return true;
}
