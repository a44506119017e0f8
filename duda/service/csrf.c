/* SPDX-License-Identifier: Apache-2.0 */
/* CSRF tokens. The secret is a cookie that other sites can neither set nor read. A page contains the secret
 * under a random mask, so that its compressed size reveals nothing about it (BREACH). */
#include <duda.h>

#include "service/cookies.h"
#include "service/memory.h"
#include "service/suspend.h"

enum { SECRET = 16, HEX = 2 * SECRET, SHOWN = 2 * HEX };

/* Returns the key of the secret attached to this request: the name of the scope, because the cookie belongs to a
 * service or to a share, and error handlers may belong to another service than the handler. Not the address of
 * the share, which is the key of the session. */
static const void *secret_key(const struct duda_ctx *d)
{
    return d->owner->scope.p;
}

static bool decode_hex(mk_str text, unsigned char *out, size_t n)
{
    for (size_t i = 0; i < n && text.len == 2 * n; i++) {
        int high = mk_char_hex(text.p[2 * i]), low = mk_char_hex(text.p[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (unsigned char)(high * 16 + low);
    }
    return text.len == 2 * n;
}

static bool load_csrf_secret(struct duda_ctx *d, unsigned char secret[SECRET])
{
    const unsigned char *given = mk_request_attached(d->request, secret_key(d));
    struct duda_cookie_name name;
    if (given)
        memcpy(secret, given, SECRET);
    return given ||
           decode_hex(duda_cookie(d, duda_reserved_cookie_name(d, DUDA_COOKIE_CSRF, &name)), secret, SECRET);
}

static bool create_csrf_secret(struct duda_ctx *d, unsigned char secret[SECRET])
{
    char buf[HEX];
    struct duda_cookie_name name;
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    unsigned char *kept = mk_request_alloc(d->request, SECRET);
    if (!kept)
        return false;
    mk_random(secret, SECRET);
    memcpy(kept, secret, SECRET);
    mk_hex_encode(&text, mk_str_of((const char *)secret, SECRET));
    const struct mk_cookie cookie = {.name = duda_reserved_cookie_name(d, DUDA_COOKIE_CSRF, &name),
                                     .value = mk_buf_str(&text),
                                     .same_site = MK_SAME_SITE_STRICT};
    return !duda_cookie_set_reserved(d, &cookie) && !mk_request_attach(d->request, secret_key(d), kept, NULL);
}

mk_str duda_csrf_token(struct duda_ctx *d)
{
    unsigned char secret[SECRET], shown[2 * SECRET];
    if (!d->request || (!load_csrf_secret(d, secret) && !create_csrf_secret(d, secret)))
        return MK_STR_NULL;
    mk_random(shown, SECRET);
    for (size_t i = 0; i < SECRET; i++)
        shown[SECRET + i] = shown[i] ^ secret[i];
    char *buf = duda_alloc(d, SHOWN + 1);
    struct mk_buf text = mk_buf_fixed(buf, buf ? SHOWN : 0);
    mk_hex_encode(&text, mk_str_of((const char *)shown, sizeof shown));
    if (!buf)
        return MK_STR_NULL;
    buf[SHOWN] = '\0';
    return mk_buf_str(&text);
}

static bool csrf_token_matches(struct duda_ctx *d, mk_str token)
{
    unsigned char secret[SECRET], shown[2 * SECRET], given[SECRET];
    struct duda_cookie_name name;
    if (!decode_hex(duda_cookie(d, duda_reserved_cookie_name(d, DUDA_COOKIE_CSRF, &name)), secret, SECRET) ||
        !decode_hex(token, shown, sizeof shown))
        return false;
    for (size_t i = 0; i < SECRET; i++)
        given[i] = shown[i] ^ shown[SECRET + i];
    return mk_consttime_eq(mk_str_of((const char *)secret, SECRET), mk_str_of((const char *)given, SECRET));
}

/* Returns whether the browser reports that a page from another origin sent the request. Missing headers do
 * not count. */
static bool is_cross_site_request(struct duda_ctx *d)
{
    mk_str site = duda_header_view(d, "Sec-Fetch-Site"), origin = duda_header_view(d, "Origin"),
           host = duda_header_view(d, "Host");
    if (site.p && !mk_str_eq(site, MK_STR("same-origin")) && !mk_str_eq(site, MK_STR("none")))
        return true;
    if (!origin.p || !host.p)
        return false;
    mk_str_cut(&origin, ':');
    return !mk_str_starts(origin, MK_STR("//")) || !mk_str_eq_nocase(mk_str_skip(origin, 2), host);
}

int duda_csrf_check(struct duda_ctx *d)
{
    enum mk_method method = d->request ? mk_request_method(d->request) : MK_METHOD_GET;
    if (method == MK_METHOD_GET || method == MK_METHOD_HEAD || method == MK_METHOD_OPTIONS)
        return DUDA_NEXT;
    if (is_cross_site_request(d))
        return duda_error(d, 403, "a page of another site has sent this request");
    mk_str token = duda_header_view(d, "X-CSRF-Token");
    if (!token.p) {
        int e = duda_form_load(d, NULL, NULL);
        if (e && e != 415)
            return e;
        token = e ? MK_STR_NULL : duda_form(d, "csrf_token");
    }
    if (mk_str_eq(token, MK_STR("api-page")) && duda_memory_is_dev_mode(d->worker_ctx))
        return DUDA_NEXT; /* sent by duda/dev/doc/request.js */
    return csrf_token_matches(d, token)
               ? DUDA_NEXT
               : duda_error(d, 403, "the CSRF token is missing or invalid: reload the page of the form");
}
