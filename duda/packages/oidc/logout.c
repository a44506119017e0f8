/* SPDX-License-Identifier: Apache-2.0 */
/* Logout, initiated by the user (OpenID Connect RP-Initiated Logout 1.0) or by the provider (Back-Channel
 * Logout 1.0). */
#include <duda/body.h>
#include <duda/crypto.h>
#include <duda/json.h>
#include <duda/memory.h>
#include <duda/middleware.h>
#include <duda/response.h>
#include <duda/send.h>
#include <duda/session.h>
#include <duda/store.h>
#include <duda/upload.h>
#include <duda/url.h>
#include <duda/wait.h>
#include <errno.h>

#include "oidc.h"

static const char *provider_name(struct duda_ctx *d)
{
    const struct duda_oidc_login *login = duda_route_data(d);
    return login ? login->provider : NULL;
}

/* ---- By the user ---- */

static duda_verdict redirect_to_logout(struct duda_ctx *d, const struct oidc_provider *p, mk_str id_token)
{
    struct mk_buf query = mk_buf_growing(3 * OIDC_CLAIMS_MAX);
    oidc_add_field(&query, "client_id", p->settings->client);
    if (id_token.len)
        oidc_add_field(&query, "id_token_hint", id_token);
    if (p->settings->logout_url.len)
        oidc_add_field(&query, "post_logout_redirect_uri", p->settings->logout_url);
    return oidc_redirect_with_query(d, p->endpoints.end, &query);
}

/* Returns whether the provider has a logout endpoint. The logout from the service succeeds even if the
 * provider is unavailable. */
static bool has_logout_endpoint(struct duda_ctx *d, struct oidc_provider *p)
{
    return !oidc_discover(d, p) && p->endpoints.end.p;
}

duda_verdict duda_oidc_log_out(struct duda_ctx *d)
{
    const struct duda_oidc_login *login = duda_route_data(d);
    struct oidc_provider *p = oidc_provider_find(d, provider_name(d));
    mk_str id_token = MK_STR_NULL;
    int e = p ? oidc_drop_tokens(d, p, &id_token) : 0;
    int destroyed = duda_session_destroy(d);
    if (e || destroyed)
        return destroyed ? destroyed : e;
    if (p && has_logout_endpoint(d, p))
        return redirect_to_logout(d, p, id_token);
    if (duda_cancelled(d))
        return duda_cancelled(d);
    return duda_redirect(d, 303, duda_mount_url(d, mk_str_from_c(login && login->home ? login->home : "/")));
}

/* ---- By the provider ---- */

#define LOGOUT_EVENT "http://schemas.openid.net/event/backchannel-logout"

struct events {
    mk_str logout;
};
static const struct duda_schema_field event_fields[] = {
    DUDA_JSON_RAW(struct events, logout, .json_name = LOGOUT_EVENT)};
static const struct duda_schema events_schema =
    DUDA_SCHEMA(struct events, event_fields, .allow_unknown = true);

/* The maximum age of a logout token in seconds, and of its record, which prevents a replay. */
enum { TOKEN_AGE_MAX_S = 300 };

struct logout_claims {
    mk_str sub, sid; /* absent: none; the token has at least one of them */
    mk_str nonce, jti;
    int64_t iat;
    struct events events;
};
static const struct duda_schema_field logout_fields[] = {
    DUDA_STRING(struct logout_claims, sub, .min_length = 1, .max_length = 180, .optional = true),
    DUDA_STRING(struct logout_claims, sid, .min_length = 1, .max_length = OIDC_CLAIMS_MAX, .optional = true),
    DUDA_JSON_RAW(struct logout_claims, nonce, .optional = true),
    DUDA_STRING(struct logout_claims, jti, .min_length = 1, .max_length = OIDC_CLAIMS_MAX),
    DUDA_INTEGER(struct logout_claims, iat),
    DUDA_OBJECT(struct logout_claims, events, &events_schema),
};
static const struct duda_schema logout_schema =
    DUDA_SCHEMA(struct logout_claims, logout_fields, .allow_unknown = true);

static bool is_recent(struct duda_ctx *d, const struct oidc_provider *p, int64_t iat)
{
    int64_t now = oidc_now(d), leeway = p->settings->leeway_ms / 1000;
    return iat <= now + leeway && iat >= now - TOKEN_AGE_MAX_S - leeway;
}

/* An ID token is signed with the same key, so a logout token must contain the event, and no nonce. */
static bool read_logout_claims(struct duda_ctx *d, const struct oidc_provider *p, mk_str json,
                               struct logout_claims *out)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors;
    *out = (struct logout_claims){.nonce = MK_STR_NULL};
    return !duda_json_read(json, &logout_schema, &memory, NULL, out, &errors) && !out->nonce.p &&
           (out->sub.p || out->sid.p) && mk_str_starts(out->events.logout, MK_STR("{")) &&
           is_recent(d, p, out->iat);
}

/* ---- Replays ---- */

/* A hash, because the provider determines the length of `jti`. Absent if out of memory. */
static mk_str replay_key(struct duda_ctx *d, const struct oidc_provider *p, mk_str jti)
{
    struct duda_hash hash;
    char buf[64];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    if (duda_hash(DUDA_SHA256, jti, &hash))
        return MK_STR_NULL;
    duda_base64url_encode(&text, duda_hash_str(&hash));
    return duda_sprintf(d, "oidc logout %.*s %.*s", MK_STR_ARG(p->settings->base.name),
                        MK_STR_ARG(mk_buf_str(&text)));
}

static struct duda_store *replay_store(struct duda_ctx *d, const struct oidc_provider *p)
{
    return oidc_keeps_tokens(p) ? oidc_token_store(d, p) : duda_store_find(d, "memory");
}

/* Returns -EEXIST if the token was used before; 0; or the error of the store. */
static int check_replay(struct duda_ctx *d, const struct oidc_provider *p, mk_str key)
{
    mk_str value;
    int e = key.p ? duda_store_get(d, replay_store(d, p), key, &value) : -ENOMEM;
    return e == -ENOENT ? 0 : e ? e : -EEXIST;
}

/* Records the token as used until it is too old to be accepted. This comes after the revocation: if the handler
 * fails or is cancelled before, the provider may send the same token again. */
static int record_use(struct duda_ctx *d, const struct oidc_provider *p, mk_str key, int64_t iat)
{
    int64_t life = iat + TOKEN_AGE_MAX_S + p->settings->leeway_ms / 1000 + 1 - oidc_now(d);
    int e = life > 0 ? duda_store_add(d, replay_store(d, p), key, MK_STR("1"), (uint64_t)life * 1000) : 0;
    return e == -ENOLINK || e == -EEXIST ? 0 : e;
}

/* ---- Revocation ---- */

/* Finds the user whose sessions the token ends. -ENOENT: no user has logged in with this session of the
 * provider. */
static int find_user(struct duda_ctx *d, const struct oidc_provider *p, const struct logout_claims *claims,
                     mk_str *user)
{
    *user = claims->sub.p ? oidc_user(d, p, claims->sub) : oidc_session_alias(d, p, claims->sid);
    if (!user->p)
        return -ENOMEM;
    return claims->sub.p ? 0 : duda_session_find_user(d, *user, user);
}

static duda_verdict revoke_sessions(struct duda_ctx *d, const struct oidc_provider *p,
                                    const struct logout_claims *claims)
{
    mk_str user;
    int e = find_user(d, p, claims, &user);
    e = e ? e : duda_session_revoke_all(d, user);
    if (e == -ENOTSUP)
        return oidc_refuse(d, 501, "sessions in cookies cannot be revoked");
    e = e && e != -ENOENT ? e : duda_header_set(d, "Cache-Control", MK_STR("no-store"));
    return e ? e : 200;
}

duda_verdict duda_oidc_back_channel_log_out(struct duda_ctx *d)
{
    struct oidc_provider *p = oidc_provider_find(d, provider_name(d));
    struct logout_claims claims;
    mk_str json, token = duda_form(d, "logout_token");
    if (!p)
        return -ENODEV;
    if (!token.len)
        return oidc_refuse(d, 400, "the request has no logout token");
    int e = oidc_discover(d, p);
    e = e ? e : oidc_verify_token(d, p, token, &json);
    if (e == -EKEYREJECTED)
        return oidc_refuse_with_reason(d, 400, "the logout token is invalid");
    if (!e && !read_logout_claims(d, p, json, &claims))
        return oidc_refuse(d, 400, "the logout token is invalid");
    if (e)
        return oidc_fail(d, p, e);
    mk_str key = replay_key(d, p, claims.jti);
    e = check_replay(d, p, key);
    if (e)
        return e == -EEXIST ? oidc_refuse(d, 400, "the logout token was used before") : e;
    duda_verdict result = revoke_sessions(d, p, &claims);
    e = result == 200 ? record_use(d, p, key, claims.iat) : 0;
    return e ? e : result;
}
