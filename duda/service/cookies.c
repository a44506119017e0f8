/* SPDX-License-Identifier: Apache-2.0 */
/* Request cookies, and signed and encrypted cookies. */
#include "service/cookies.h"

#include <errno.h>
#include <monkey/sized.h>

#include "service/response.h"
#include "service/session_config.h"
#include "service/share.h"

enum { PROOF_MAX = MK_COOKIE_MAX, TIME_LEN = 8, MAX_AGE = 400 * 86400 };

mk_str duda_cookie(struct duda_ctx *d, const char *name)
{
    mk_str found = d->request ? mk_request_cookie_view(d->request, name) : MK_STR_NULL;
    return found.p ? duda_strdup(d, found) : MK_STR_NULL;
}

int duda_cookie_set_reserved(struct duda_ctx *d, const struct mk_cookie *cookie)
{
    struct mk_buf line = mk_buf_growing(MK_COOKIE_MAX);
    int e = mk_cookie_write(&line, cookie, duda_request_is_tls(d));
    e = e ? e : duda_response_add_header(d, "Set-Cookie", mk_buf_str(&line));
    mk_buf_free(&line);
    return e;
}

int duda_cookie_set_sized(struct duda_ctx *d, const struct mk_cookie *cookie, size_t cookie_size)
{
    struct mk_cookie full;
    cookie = mk_sized_in(&full, sizeof full, cookie, cookie_size);
    int e = duda_reserved_cookie_check(d, mk_str_from_c(cookie->name));
    return e ? e : duda_cookie_set_reserved(d, cookie);
}

int duda_cookie_delete(struct duda_ctx *d, const char *name)
{
    return duda_cookie_set(d, &(struct mk_cookie){.name = name, .max_age = -1});
}

/* ---- Signing and encryption ---- */

/* Neither a scope nor a cookie name contains a line ending, so the rest is unambiguously the host. */
mk_str duda_cookie_crypto_context(struct duda_ctx *d, mk_str name)
{
    mk_str host = mk_request_vhost_name(d->request), scope = duda_scope(d);
    if (!host.p)
        return MK_STR_NULL;
    host = duda_scope_state_host(d->owner ? d->owner->share : NULL, host);
    size_t len = name.len + scope.len + host.len + 2;
    char *buf = duda_alloc(d, len);
    if (!buf)
        return MK_STR_NULL;
    struct mk_buf out = mk_buf_fixed(buf, len);
    mk_buf_add(&out, name);
    mk_buf_add_char(&out, '\n');
    mk_buf_add(&out, scope);
    mk_buf_add_char(&out, '\n');
    mk_buf_add(&out, host);
    return mk_buf_str(&out);
}

/* Writes the expiry time before the text. */
static void append_expiry(struct mk_buf *out, int64_t end)
{
    for (int shift = 56; shift >= 0; shift -= 8)
        mk_buf_add_char(out, (char)((uint64_t)end >> shift));
}

/* Returns the text after the expiry time; absent if that time has passed. */
static mk_str check_expiry(struct duda_ctx *d, mk_str text)
{
    uint64_t end = 0;
    if (text.len < TIME_LEN)
        return MK_STR_NULL;
    for (size_t i = 0; i < TIME_LEN; i++)
        end = end << 8 | (unsigned char)text.p[i];
    return (int64_t)end > mk_request_time(d->request) ? mk_str_skip(text, TIME_LEN) : MK_STR_NULL;
}

/* See duda_cookie_set_reserved_encrypted(). */
struct set_condition {
    bool (*may_set)(void *ctx);
    void *ctx;
};

static int set_on_condition(struct duda_ctx *d, const struct mk_cookie *cookie, const struct set_condition *c)
{
    return c->may_set && !c->may_set(c->ctx) ? -ESTALE : duda_cookie_set_reserved(d, cookie);
}

static int set_protected_cookie(struct duda_ctx *d, const struct mk_cookie *cookie, bool seals,
                                const struct set_condition *condition)
{
    struct duda_session_config *v = d->worker_ctx->session_config;
    unsigned char mac[DUDA_COOKIE_CRYPTO_MAC];
    struct mk_buf p = mk_buf_growing(PROOF_MAX), q = mk_buf_growing(PROOF_MAX),
                  b = mk_buf_growing(2 * PROOF_MAX);
    if (!d->request || !duda_session_config_load_crypto(v))
        return d->request ? -ENOTSUP : -EALREADY;
    mk_str purpose = duda_cookie_crypto_context(d, mk_str_from_c(cookie->name));
    if (!purpose.p)
        return -ENOMEM;
    int64_t age = cookie->max_age > 0 ? cookie->max_age : MAX_AGE;
    append_expiry(&p, mk_request_time(d->request) + age);
    mk_buf_add(&p, cookie->value);
    bool good = !p.failed && (seals ? v->seal->seal(v->keys[0], purpose, mk_buf_str(&p), &q)
                                    : v->seal->mac(v->keys[0], purpose, mk_buf_str(&p), mac));
    if (good && !seals) {
        mk_buf_add(&q, mk_str_of((const char *)mac, sizeof mac));
        mk_buf_add(&q, mk_buf_str(&p));
    }
    mk_base64_encode(&b, mk_buf_str(&q));
    struct mk_cookie c = *cookie;
    c.value = mk_buf_str(&b);
    int e = p.failed || q.failed || b.failed ? -EINVAL : good ? set_on_condition(d, &c, condition) : -ENOMEM;
    mk_buf_free(&p);
    mk_buf_free(&q);
    mk_buf_free(&b);
    return e;
}

int duda_cookie_set_signed_sized(struct duda_ctx *d, const struct mk_cookie *cookie, size_t cookie_size)
{
    struct mk_cookie full;
    cookie = mk_sized_in(&full, sizeof full, cookie, cookie_size);
    int e = duda_reserved_cookie_check(d, mk_str_from_c(cookie->name));
    return e ? e : set_protected_cookie(d, cookie, false, &(struct set_condition){NULL, NULL});
}

int duda_cookie_set_reserved_encrypted(struct duda_ctx *d, const struct mk_cookie *cookie,
                                       bool (*may_set)(void *ctx), void *ctx)
{
    return set_protected_cookie(d, cookie, true, &(struct set_condition){may_set, ctx});
}

int duda_cookie_set_encrypted_sized(struct duda_ctx *d, const struct mk_cookie *cookie, size_t cookie_size)
{
    struct mk_cookie full;
    cookie = mk_sized_in(&full, sizeof full, cookie, cookie_size);
    int e = duda_reserved_cookie_check(d, mk_str_from_c(cookie->name));
    return e ? e : duda_cookie_set_reserved_encrypted(d, cookie, NULL, NULL);
}

static bool has_valid_mac(const struct duda_session_config *v, size_t i, mk_str purpose, mk_str proven)
{
    unsigned char mac[DUDA_COOKIE_CRYPTO_MAC];
    return proven.len > sizeof mac &&
           v->seal->mac(v->keys[i], purpose, mk_str_skip(proven, sizeof mac), mac) &&
           mk_consttime_eq(mk_str_of((const char *)mac, sizeof mac), mk_str_first(proven, sizeof mac));
}

/* Decrypts or verifies `proven` with the first key that fits. Returns the expiry time and the text, as a
 * slice of `plain` or `proven`; absent if no key fits. */
static mk_str verify_or_decrypt(const struct duda_session_config *v, mk_str purpose, mk_str proven,
                                bool sealed, struct mk_buf *plain)
{
    for (size_t i = 0; i < v->n_keys; i++) {
        mk_buf_clear(plain);
        if (sealed && v->seal->open(v->keys[i], purpose, proven, plain) && !plain->failed)
            return mk_buf_str(plain);
        if (!sealed && has_valid_mac(v, i, purpose, proven))
            return mk_str_skip(proven, DUDA_COOKIE_CRYPTO_MAC);
    }
    return MK_STR_NULL;
}

static mk_str get_protected_cookie(struct duda_ctx *d, const char *name, bool sealed)
{
    struct duda_session_config *v = d->worker_ctx->session_config;
    mk_str text = duda_cookie(d, name), found = MK_STR_NULL;
    if (!text.p || !duda_session_config_load_crypto(v))
        return MK_STR_NULL;
    mk_str purpose = duda_cookie_crypto_context(d, mk_str_from_c(name));
    if (!purpose.p)
        return MK_STR_NULL;
    struct mk_buf proven = mk_buf_growing(PROOF_MAX), plain = mk_buf_growing(PROOF_MAX);
    if (mk_base64_decode(&proven, text) && !proven.failed)
        found = check_expiry(d, verify_or_decrypt(v, purpose, mk_buf_str(&proven), sealed, &plain));
    if (found.p)
        found = duda_strdup(d, found);
    mk_buf_free(&proven);
    mk_buf_free(&plain);
    return found;
}

mk_str duda_cookie_signed(struct duda_ctx *d, const char *name)
{
    return get_protected_cookie(d, name, false);
}

mk_str duda_cookie_encrypted(struct duda_ctx *d, const char *name)
{
    return get_protected_cookie(d, name, true);
}
