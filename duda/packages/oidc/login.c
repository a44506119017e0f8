/* SPDX-License-Identifier: Apache-2.0 */
/* The authorization code flow with PKCE (OpenID Connect Core 1.0, RFC 7636), as handlers of routes. */
#include <duda/body.h>
#include <duda/json.h>
#include <duda/memory.h>
#include <duda/middleware.h>
#include <duda/request.h>
#include <duda/response.h>
#include <duda/send.h>
#include <duda/session.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/text.h>

#include "oidc.h"

enum { SECRET_BYTES = 32, CLAIMS_MAX = 32 * 1024, LEEWAY_S = 60, NEXT_MAX = 500 };

struct claims {
    mk_str sub, nonce, azp, aud;
};
static const struct duda_schema_field claim_fields[] = {
    DUDA_STRING(struct claims, sub, .min_length = 1, .max_length = 180),
    DUDA_STRING(struct claims, nonce, .max_length = 100),
    DUDA_STRING(struct claims, azp, .max_length = 255, .optional = true),
    DUDA_JSON_RAW(struct claims, aud),
};
static const struct duda_schema claims_schema =
    DUDA_SCHEMA(struct claims, claim_fields, .allow_unknown = true);

static const struct duda_oidc_login *login_of(struct duda_ctx *d)
{
    static const struct duda_oidc_login plain = {.provider = NULL};
    const struct duda_oidc_login *login = duda_route_data(d);
    return login ? login : &plain;
}

/* ---- Values of a login attempt in the session: each belongs to one provider, and is used once ---- */

static mk_str session_name(struct duda_ctx *d, const struct oidc_provider *p, const char *name)
{
    return duda_sprintf(d, "oidc.%.*s.%s", MK_STR_ARG(p->settings->base.name), name);
}

static int put_value(struct duda_ctx *d, const struct oidc_provider *p, const char *name, mk_str value)
{
    mk_str full = session_name(d, p, name);
    return full.p ? duda_session_set(d, full.p, value) : -ENOMEM;
}

static int take_value(struct duda_ctx *d, const struct oidc_provider *p, const char *name, mk_str *out)
{
    mk_str full = session_name(d, p, name);
    int e = full.p ? duda_session_get(d, full.p, out) : -ENOMEM;
    if (e)
        return e == -ENOENT ? 0 : e;
    *out = duda_strdup(d, *out);
    return out->p ? duda_session_set(d, full.p, MK_STR_NULL) : -ENOMEM;
}

static mk_str random_text(struct duda_ctx *d)
{
    char buf[64];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    duda_random_text(&out, SECRET_BYTES);
    return duda_strdup(d, mk_buf_str(&out));
}

static mk_str sha256_text(struct duda_ctx *d, mk_str text)
{
    char buf[64];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    struct duda_hash hash;
    if (!text.p || duda_hash(DUDA_SHA256, text, &hash))
        return MK_STR_NULL;
    duda_base64url_encode(&out, duda_hash_str(&hash));
    return duda_strdup(d, mk_buf_str(&out));
}

/* ---- Redirect to the provider ---- */

static duda_verdict redirect_with_query(struct duda_ctx *d, mk_str to, struct mk_buf *query)
{
    bool has_query = memchr(to.p, '?', to.len) != NULL, failed = query->failed;
    mk_str url = duda_sprintf(d, "%.*s%c%.*s", MK_STR_ARG(to), has_query ? '&' : '?',
                              MK_STR_ARG(mk_str_skip(mk_buf_str(query), 1)));
    mk_buf_free(query);
    return url.p && !failed ? duda_redirect(d, 303, url) : -ENOMEM;
}

static int begin_attempt(struct duda_ctx *d, const struct oidc_provider *p, mk_str state, mk_str nonce,
                         mk_str verifier)
{
    mk_str next = duda_query(d, "next");
    int e = state.p && nonce.p && verifier.p ? put_value(d, p, "state", state) : -ENOMEM;
    e = e ? e : put_value(d, p, "nonce", nonce);
    e = e ? e : put_value(d, p, "verifier", verifier);
    return e ? e : put_value(d, p, "next", next.len <= NEXT_MAX ? next : MK_STR_NULL);
}

duda_verdict duda_oidc_log_in(struct duda_ctx *d)
{
    struct oidc_provider *p = oidc_provider_find(d, login_of(d)->provider);
    if (!p)
        return -ENODEV;
    mk_str state = random_text(d), nonce = random_text(d), verifier = random_text(d);
    int e = oidc_discover(d, p);
    e = e ? e : begin_attempt(d, p, state, nonce, verifier);
    if (e)
        return e;
    struct mk_buf query = mk_buf_growing(8192);
    oidc_add_field(&query, "response_type", MK_STR("code"));
    oidc_add_field(&query, "scope", p->settings->scope);
    oidc_add_field(&query, "client_id", p->settings->client);
    oidc_add_field(&query, "redirect_uri", p->settings->redirect_url);
    oidc_add_field(&query, "state", state);
    oidc_add_field(&query, "nonce", nonce);
    oidc_add_field(&query, "code_challenge", sha256_text(d, verifier));
    oidc_add_field(&query, "code_challenge_method", MK_STR("S256"));
    return redirect_with_query(d, p->endpoints.authorization, &query);
}

/* ---- Callback ---- */

static int verify_token(struct duda_ctx *d, struct oidc_provider *p, mk_str token, mk_str *json)
{
    struct mk_buf claims = mk_buf_growing(CLAIMS_MAX);
    bool secure = mk_str_starts(p->settings->base.location, MK_STR("https://"));
    const struct duda_jwt_rules rules = {.now = (int64_t)mk_worker_now(duda_worker(d)),
                                         .leeway_s = LEEWAY_S,
                                         .issuer = p->settings->base.location,
                                         .audience = p->settings->client};
    int e = package_jwks_verify(d, &p->jwks, p->endpoints.keys, secure, &claims, token, &rules);
    if (!e)
        *json = duda_strdup(d, mk_buf_str(&claims));
    mk_buf_free(&claims);
    if (e == -EBADMSG || e == -EKEYREJECTED || e == -EKEYEXPIRED || e == -EKEYREVOKED)
        return oidc_refuse(d, 403, "the ID token is invalid");
    if (e && e != -ENOMEM && !duda_cancelled(d))
        return oidc_refuse(d, 502, "the provider's keys cannot be fetched");
    return e ? e : json->p ? 0 : -ENOMEM;
}

/* A token for several audiences must name this client in `azp`. The verification has already checked that `aud`
 * contains this client. */
static bool is_for_client(const struct claims *c, mk_str client)
{
    bool is_one = !mk_str_starts(c->aud, MK_STR("[")) || mk_str_find(c->aud, ',') == MK_STR_NONE;
    return c->azp.p ? mk_str_eq(c->azp, client) : is_one;
}

static int read_claims(struct duda_ctx *d, const struct oidc_provider *p, mk_str json, mk_str nonce,
                       struct claims *out)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors;
    if (duda_json_read(json, &claims_schema, &memory, NULL, out, &errors))
        return oidc_refuse(d, 403, "the ID token lacks a claim");
    if (!nonce.p || !mk_consttime_eq(out->nonce, nonce) || !is_for_client(out, p->settings->client))
        return oidc_refuse(d, 403, "the ID token is not for this login");
    return 0;
}

static duda_verdict log_in_user(struct duda_ctx *d, const struct oidc_provider *p, mk_str sub, mk_str json,
                                mk_str next)
{
    const struct duda_oidc_login *login = login_of(d);
    mk_str user = duda_sprintf(d, "%.*s:%.*s", MK_STR_ARG(p->settings->base.name), MK_STR_ARG(sub));
    int e = user.p ? duda_session_log_in(d, user) : -ENOMEM;
    if (!e && login->on_login && (e = login->on_login(d, user, json)) != 0) {
        int lost = duda_session_destroy(d);
        e = lost ? lost : e;
    }
    if (e)
        return e;
    return next.len ? duda_redirect_local(d, 303, next)
                    : duda_redirect(d, 303, mk_str_from_c(login->home ? login->home : "/"));
}

static duda_verdict finish_login(struct duda_ctx *d, struct oidc_provider *p, mk_str nonce, mk_str verifier,
                                 mk_str next)
{
    struct claims claims = {.azp = MK_STR_NULL};
    mk_str token, json = MK_STR_NULL;
    int e = oidc_discover(d, p);
    e = e ? e : oidc_exchange_code(d, p, duda_query(d, "code"), verifier, &token);
    e = e ? e : verify_token(d, p, token, &json);
    e = e ? e : read_claims(d, p, json, nonce, &claims);
    return e ? e : log_in_user(d, p, claims.sub, json, next);
}

duda_verdict duda_oidc_callback(struct duda_ctx *d)
{
    struct oidc_provider *p = oidc_provider_find(d, login_of(d)->provider);
    mk_str state = MK_STR_NULL, nonce = MK_STR_NULL, verifier = MK_STR_NULL, next = MK_STR_NULL;
    mk_str issuer = duda_query(d, "iss");
    if (!p)
        return -ENODEV;
    int e = take_value(d, p, "state", &state);
    e = e ? e : take_value(d, p, "nonce", &nonce);
    e = e ? e : take_value(d, p, "verifier", &verifier);
    e = e ? e : take_value(d, p, "next", &next);
    if (e)
        return e;
    if (!state.p || !mk_consttime_eq(state, duda_query(d, "state")) ||
        (issuer.p && !mk_str_eq(issuer, p->settings->base.location))) /* RFC 9207 */
        return oidc_refuse(d, 403, "this does not answer a login that this browser began");
    if (!duda_query(d, "code").len)
        return oidc_refuse(d, 403, "the provider has not logged the user in");
    return finish_login(d, p, nonce, verifier, next);
}

/* ---- Logout ---- */

duda_verdict duda_oidc_log_out(struct duda_ctx *d)
{
    const struct duda_oidc_login *login = login_of(d);
    struct oidc_provider *p = oidc_provider_find(d, login->provider);
    int e = duda_session_destroy(d);
    if (e)
        return e;
    if (p &&
        oidc_discover(d, p)) { /* the logout from the service succeeds even if the provider is unavailable */
        if (duda_cancelled(d))
            return duda_cancelled(d);
        (void)duda_response_reset(d);
        p = NULL;
    }
    if (!p || !p->endpoints.end.p)
        return duda_redirect(d, 303, mk_str_from_c(login->home ? login->home : "/"));
    struct mk_buf query = mk_buf_growing(4096);
    oidc_add_field(&query, "client_id", p->settings->client);
    if (p->settings->logout_url.len)
        oidc_add_field(&query, "post_logout_redirect_uri", p->settings->logout_url);
    return redirect_with_query(d, p->endpoints.end, &query);
}
