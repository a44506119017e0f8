/* SPDX-License-Identifier: Apache-2.0 */
/* Accessors of the request. */

#include "service/duda_ctx.h"

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

mk_str duda_client_ip(struct duda_ctx *d)
{
    return d->request ? duda_strdup(d, mk_request_client_text(d->request)) : MK_STR_NULL;
}

/* ---- Request ID ---- */

static bool is_valid_request_id(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!mk_char_is_alpha(s.p[i]) && !mk_char_is_digit(s.p[i]) && !strchr("._-", s.p[i]))
            return false;
    return s.len > 0 && s.len <= 64;
}

mk_str duda_request_id(struct duda_ctx *d)
{
    if (d->id.p)
        return d->id;
    mk_str client_id = duda_header_view(d, "X-Request-Id");
    unsigned char bits[8];
    char *buf = mk_request_alloc(d->request, 65); /* duda_arena_rewind() must not free it */
    if (!buf)
        return MK_STR("-");
    struct mk_buf id = mk_buf_fixed(buf, 64);
    mk_random(bits, sizeof bits);
    if (is_valid_request_id(client_id))
        mk_buf_add(&id, client_id);
    else
        mk_hex_encode(&id, mk_str_of((char *)bits, sizeof bits));
    buf[id.len] = '\0';
    return d->id = mk_buf_str(&id);
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

mk_str duda_query(struct duda_ctx *d, const char *name)
{
    mk_str rest = d->request ? mk_request_query(d->request) : MK_STR_NULL, expected = mk_str_from_c(name);
    while (rest.p) {
        mk_str pair = mk_str_cut(&rest, '&'), key = mk_str_cut(&pair, '=');
        bool is_plain = mk_str_find(key, '%') == MK_STR_NONE && mk_str_find(key, '+') == MK_STR_NONE;
        if (mk_str_eq(is_plain ? key : decode_query_component(d, key), expected))
            return decode_query_component(d, pair.p ? pair : MK_STR(""));
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
