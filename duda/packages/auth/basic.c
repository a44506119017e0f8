/* SPDX-License-Identifier: Apache-2.0 */
#include <duda/memory.h>
#include <duda/middleware.h>
#include <duda/request.h>
#include <errno.h>
#include <monkey/text.h>

#include "auth.h"

enum { USER_MAX = 255, PAIR_MAX = 1024 };

/* Decodes "user:password". Returns false if the credentials are malformed. */
static bool decode_pair(struct duda_ctx *d, mk_str text, mk_str *user, mk_str *password)
{
    char *buf = text.len <= 2 * PAIR_MAX ? duda_alloc(d, PAIR_MAX) : NULL;
    struct mk_buf pair = mk_buf_fixed(buf, buf ? PAIR_MAX : 0);
    if (!buf || !mk_base64_decode(&pair, text) || pair.failed || !memchr(pair.p, ':', pair.len))
        return false;
    *password = mk_buf_str(&pair);
    *user = mk_str_cut(password, ':');
    for (size_t i = 0; i < user->len; i++)
        if ((unsigned char)user->p[i] < ' ' || user->p[i] == 127)
            return false;
    return user->len > 0 && user->len <= USER_MAX;
}

/* ---- Cache of verified passwords ---- */

static const struct mk_plugin *auth_plugin;

void auth_basic_set_plugin(const struct mk_plugin *plugin)
{
    auth_plugin = plugin;
}

static struct auth_worker *auth_worker_get(struct duda_ctx *d)
{
    return mk_worker_data(duda_worker(d), auth_plugin);
}

/* The tag covers the stored hash, so it is worthless once the password has changed. */
static bool compute_tag(struct duda_ctx *d, mk_str user, mk_str password, mk_str hash,
                        char tag[AUTH_TAG_SIZE])
{
    size_t n = user.len + 1 + hash.len + 1 + password.len;
    char *text = duda_alloc(d, n);
    struct mk_buf out = mk_buf_fixed(text, text ? n : 0);
    mk_buf_add(&out, user);
    mk_buf_add_char(&out, '\0');
    mk_buf_add(&out, hash);
    mk_buf_add_char(&out, '\0');
    mk_buf_add(&out, password);
    if (!text || out.failed)
        return false;
    mk_hmac_sha256(mk_str_of(auth_worker_get(d)->key, AUTH_TAG_SIZE), mk_buf_str(&out), tag);
    return true;
}

static struct auth_verified *find_slot(struct duda_ctx *d, const char tag[AUTH_TAG_SIZE])
{
    return &auth_worker_get(d)->verified[(unsigned char)tag[0] % AUTH_VERIFIED_MAX];
}

static bool is_verified(struct duda_ctx *d, const char tag[AUTH_TAG_SIZE])
{
    const struct auth_verified *v = find_slot(d, tag);
    return v->until > (int64_t)mk_worker_now(duda_worker(d)) &&
           mk_consttime_eq(mk_str_of(v->tag, AUTH_TAG_SIZE), mk_str_of(tag, AUTH_TAG_SIZE));
}

static void remember_verified(struct duda_ctx *d, const char tag[AUTH_TAG_SIZE])
{
    struct auth_verified *v = find_slot(d, tag);
    memcpy(v->tag, tag, AUTH_TAG_SIZE);
    v->until = (int64_t)mk_worker_now(duda_worker(d)) + AUTH_VERIFIED_S;
}

/* ---- Middleware ---- */

static int verify_cached(struct duda_ctx *d, mk_str user, mk_str password, mk_str hash, bool *matches)
{
    char tag[AUTH_TAG_SIZE];
    bool has_tag = hash.len && compute_tag(d, user, password, hash, tag);
    *matches = has_tag && is_verified(d, tag);
    int e = *matches ? 0 : duda_password_verify(d, password, hash, matches);
    if (!e && *matches && has_tag)
        remember_verified(d, tag);
    return e;
}

/* Returns 0 and sets *matches, or returns an error. */
static int check_user(struct duda_ctx *d, const struct duda_basic_auth *auth, mk_str text,
                      struct duda_identity *identity, bool *matches)
{
    mk_str password, hash = MK_STR_NULL;
    *matches = false;
    if (!decode_pair(d, text, &identity->user, &password))
        return 0;
    identity->user = duda_strdup(d, identity->user);
    if (!identity->user.p)
        return -ENOMEM;
    int e = auth->find(d, identity->user, &hash, identity);
    if (e && e != -ENOENT)
        return e;
    return verify_cached(d, identity->user, password, e ? MK_STR_NULL : hash, matches);
}

duda_verdict duda_auth_basic(struct duda_ctx *d)
{
    const struct duda_basic_auth *auth = duda_middleware_data(d);
    struct duda_identity identity = {.scheme = "Basic"};
    bool matches = false;
    if (!duda_data_has_type(auth, DUDA_DATA_BASIC_AUTH)) /* called by a function of the service */
        return duda_reason(d, -EINVAL,
                           "duda_auth_basic() needs a `.data` that DUDA_BASIC_AUTH() initializes");
    mk_str text = duda_auth_credentials(d, MK_STR("Basic"));
    int e = text.p ? check_user(d, auth, text, &identity, &matches) : 0;
    if (!e && matches)
        e = duda_identity_set(d, &identity);
    else if (!e && text.p)
        (void)duda_reason(d, 401, "no such user, or another password");
    return e ? e : matches ? DUDA_NEXT : duda_auth_challenge(d, "Basic", auth->realm, NULL);
}
