/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that the service stores as hashes. They have 256 random bits, so a fast hash suffices. */
#include <duda/memory.h>
#include <duda/middleware.h>
#include <duda/request.h>
#include <errno.h>
#include <monkey/text.h>

#include "auth.h"

enum { TOKEN_BYTES = 32 };

mk_str duda_token_hash(struct duda_ctx *d, mk_str token)
{
    struct duda_hash hash;
    char hex[DUDA_TOKEN_HASH_LEN];
    struct mk_buf out = mk_buf_fixed(hex, sizeof hex);
    if (duda_hash(DUDA_SHA256, token, &hash))
        return MK_STR_NULL;
    mk_hex_encode(&out, duda_hash_str(&hash));
    return duda_strdup(d, mk_buf_str(&out));
}

int duda_token_new(struct duda_ctx *d, const char *prefix, mk_str *token, mk_str *hash)
{
    char text[DUDA_TOKEN_MAX];
    struct mk_buf out = mk_buf_fixed(text, sizeof text);
    *token = *hash = MK_STR_NULL;
    mk_buf_add(&out, mk_str_from_c(prefix ? prefix : ""));
    duda_random_text(&out, TOKEN_BYTES);
    if (out.failed)
        return -EMSGSIZE;
    *token = duda_strdup(d, mk_buf_str(&out));
    *hash = token->p ? duda_token_hash(d, *token) : MK_STR_NULL;
    return hash->p ? 0 : -ENOMEM;
}

/* Returns 0; -ENOENT: there is no such token; or another error. */
static int find_token(struct duda_ctx *d, const struct duda_token_auth *auth, mk_str token,
                      struct duda_identity *identity)
{
    if (!token.len || token.len > DUDA_TOKEN_MAX)
        return -ENOENT;
    mk_str hash = duda_token_hash(d, token);
    return hash.p ? auth->find(d, hash, identity) : -ENOMEM;
}

static duda_verdict check_token(struct duda_ctx *d, const struct duda_token_auth *auth, mk_str token,
                                const char *scheme)
{
    struct duda_identity identity = {.scheme = scheme};
    int e = find_token(d, auth, token, &identity);
    if (e == -ENOENT || (!e && !identity.user.len))
        return duda_auth_challenge(d, scheme, auth->realm, token.p ? "invalid_token" : NULL);
    e = e ? e : duda_identity_set(d, &identity);
    return e ? e : DUDA_NEXT;
}

/* For middleware that a function of the service calls: Duda checks the `.data` of entries at load. */
static int report_wrong_data(struct duda_ctx *d)
{
    return duda_reason(d, -EINVAL,
                       "middleware for tokens needs a `.data` that DUDA_TOKEN_AUTH() initializes");
}

duda_verdict duda_auth_bearer(struct duda_ctx *d)
{
    const struct duda_token_auth *auth = duda_middleware_data(d);
    if (!duda_data_has_type(auth, DUDA_DATA_TOKEN_AUTH))
        return report_wrong_data(d);
    return check_token(d, auth, duda_auth_credentials(d, MK_STR("Bearer")), "Bearer");
}

duda_verdict duda_auth_api_key(struct duda_ctx *d)
{
    const struct duda_token_auth *auth = duda_middleware_data(d);
    if (!duda_data_has_type(auth, DUDA_DATA_TOKEN_AUTH))
        return report_wrong_data(d);
    mk_str token = duda_header(d, auth->header ? auth->header : "X-API-Key");
    if (!token.p && auth->query)
        token = duda_query(d, auth->query);
    return check_token(d, auth, token, "ApiKey");
}
