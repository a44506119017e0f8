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

/* Copies a name or value in form encoding, and decodes only `+`. */
static mk_str copy_with_escapes(mk_str text, char *to)
{
    for (size_t i = 0; i < text.len; i++)
        to[i] = (char)(text.p[i] == '+' ? ' ' : text.p[i]);
    to[text.len] = '\0';
    return mk_str_of(to, text.len);
}

/* Decodes a name or value in form encoding; leaves all its escapes unchanged if one of them is invalid. */
static mk_str decode_query_component(struct duda_ctx *d, mk_str text)
{
    char *buf = duda_alloc(d, text.len + 1), *to = buf;
    if (!buf)
        return MK_STR_NULL;
    for (const char *at = text.p, *end = at + text.len; at < end; at++) {
        char c = (char)(*at == '+' ? ' ' : *at);
        if (c == '%') {
            int high = end - at > 2 ? mk_char_hex(at[1]) : -1, low = high >= 0 ? mk_char_hex(at[2]) : -1;
            if (low < 0)
                return copy_with_escapes(text, buf);
            c = (char)(high << 4 | low);
            at += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    return mk_str_of(buf, (size_t)(to - buf));
}

/* Splits off the pair at *at, and moves *at after it: beyond the end of the query after the last one. Returns whether the
 * key contains no escapes. */
static bool split_query_pair(mk_str query, size_t *at, mk_str *key, mk_str *value)
{
    const char *from = query.p + *at, *end = query.p + query.len, *p = from;
    bool is_plain = true;
    for (; p < end && *p != '=' && *p != '&'; p++)
        is_plain &= *p != '%' && *p != '+';
    *key = mk_str_of(from, (size_t)(p - from));
    *value = MK_STR("");
    if (p < end && *p == '=') {
        from = p + 1;
        p = memchr(from, '&', (size_t)(end - from));
        p = p ? p : end;
        *value = mk_str_of(from, (size_t)(p - from));
    }
    *at = (size_t)(p - query.p) + 1;
    return is_plain;
}

static bool is_query_key(struct duda_ctx *d, mk_str key, bool is_plain, mk_str expected)
{
    return mk_str_eq(is_plain ? key : decode_query_component(d, key), expected);
}

static mk_str query_of(struct duda_ctx *d)
{
    return d->request ? mk_request_query(d->request) : MK_STR_NULL;
}

/* Does the byte end a key, or does it need decoding? */
static bool is_key_byte_special(char c)
{
    return c == '=' || c == '&' || c == '%' || c == '+';
}

DUDA_COLD static bool is_encoded_key(struct duda_ctx *d, const char **at, const char *end, const char *name)
{
    mk_str key, value;
    size_t next = 0;
    (void)split_query_pair(mk_str_of(*at, (size_t)(end - *at)), &next, &key, &value);
    *at += key.len;
    return is_query_key(d, key, false, mk_str_from_c(name));
}

/* Returns whether the key at *at is `name`, and moves *at to its end, or to the first byte that differs. Keys are short, so a
 * loop takes less time than functions of libc. */
static inline bool match_query_key(struct duda_ctx *d, const char **at, const char *end, const char *name)
{
    const char *p = *at, *n = name;
    while (p < end && *p == *n && *n && !is_key_byte_special(*p))
        p++, n++;
    if (p < end && (*p == '%' || *p == '+'))
        return is_encoded_key(d, at, end, name);
    *at = p;
    return !*n && (p == end || *p == '=' || *p == '&');
}

/* Returns the value, not decoded, of the first pair from *at on with this name, and moves *at after the pair. Absent: there is
 * none. */
static mk_str find_query_value(struct duda_ctx *d, const char *name, size_t *at)
{
    mk_str query = query_of(d);
    if (!query.p || *at > query.len)
        return MK_STR_NULL;
    const char *end = query.p + query.len, *next;
    for (const char *p = query.p + *at; p <= end; p = next + 1) {
        bool is_found = match_query_key(d, &p, end, name);
        next = memchr(p, '&', (size_t)(end - p));
        next = next ? next : end;
        if (!is_found)
            continue;
        *at = (size_t)(next + 1 - query.p);
        return p < next ? mk_str_of(p + 1, (size_t)(next - p) - 1) : MK_STR("");
    }
    return MK_STR_NULL;
}

bool duda_query_pair_has_name(struct duda_ctx *d, mk_str pair, mk_str name)
{
    mk_str key, value;
    size_t at = 0;
    bool is_plain = split_query_pair(pair, &at, &key, &value);
    return is_query_key(d, key, is_plain, name);
}

bool duda_query_next(struct duda_ctx *d, const char *name, size_t *at, mk_str *value)
{
    mk_str raw = find_query_value(d, name, at);
    if (raw.p)
        *value = decode_query_component(d, raw);
    return raw.p != NULL;
}

bool duda_query_at(struct duda_ctx *d, size_t i, mk_str *name, mk_str *value)
{
    mk_str query = query_of(d), key, raw;
    size_t at = 0;
    while (query.p && at <= query.len) {
        (void)split_query_pair(query, &at, &key, &raw);
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
    size_t at = 0;
    mk_str raw = find_query_value(d, name, &at);
    return raw.p ? decode_query_component(d, raw) : MK_STR_NULL;
}

const char *duda_query_or(struct duda_ctx *d, const char *name, const char *otherwise)
{
    mk_str value = duda_query(d, name);
    return value.p && !memchr(value.p, '\0', value.len) ? value.p : otherwise;
}

/* The digits of a number need no decoding, and usually have no escapes. */
static bool parse_query_int(struct duda_ctx *d, mk_str raw, int64_t *out)
{
    return mk_num_parse_int(raw, out) || mk_num_parse_int(decode_query_component(d, raw), out);
}

bool duda_query_int(struct duda_ctx *d, const char *name, int64_t *out)
{
    size_t at = 0;
    mk_str raw = find_query_value(d, name, &at);
    return raw.p && parse_query_int(d, raw, out);
}

bool duda_query_int_or(struct duda_ctx *d, const char *name, int64_t fallback, int64_t *out)
{
    size_t at = 0;
    mk_str raw = find_query_value(d, name, &at);
    if (raw.p)
        return parse_query_int(d, raw, out);
    *out = fallback;
    return true;
}
