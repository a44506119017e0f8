/* SPDX-License-Identifier: Apache-2.0 */
/* The authorization code flow with PKCE (OpenID Connect Core 1.0, RFC 7636), as handlers of routes. */
#include <duda/body.h>
#include <duda/crypto.h>
#include <duda/json.h>
#include <duda/memory.h>
#include <duda/middleware.h>
#include <duda/request.h>
#include <duda/send.h>
#include <duda/session.h>
#include <duda/url.h>
#include <errno.h>
#include <monkey/sized.h>
#include <monkey/text.h>

#include "oidc.h"

enum { NEXT_MAX = 500, ERROR_MAX = 100 };

struct claims {
    mk_str sub, sid, nonce, azp, aud, acr;
    int64_t auth_time;
};
static const struct duda_schema_field claim_fields[] = {
    DUDA_STRING(struct claims, sub, .min_length = 1, .max_length = 180),
    DUDA_STRING(struct claims, sid, .max_length = OIDC_CLAIMS_MAX, .optional = true),
    DUDA_STRING(struct claims, nonce, .max_length = 100),
    DUDA_STRING(struct claims, azp, .max_length = 255, .optional = true),
    DUDA_JSON_RAW(struct claims, aud),
    DUDA_STRING(struct claims, acr, .max_length = 255, .optional = true),
    DUDA_INTEGER(struct claims, auth_time, .optional = true),
};
static const struct duda_schema claims_schema =
    DUDA_SCHEMA(struct claims, claim_fields, .allow_unknown = true);

/* The values of a login attempt, which the session keeps until the browser returns. */
struct attempt {
    mk_str state, nonce, verifier;
    mk_str next, max_age, acr_values; /* absent: none */
};

static const struct duda_oidc_login plain_login = {.provider = NULL};

static const struct duda_oidc_login *login_of(struct duda_ctx *d)
{
    const struct duda_oidc_login *login = duda_route_data(d);
    return login ? login : &plain_login;
}

mk_str oidc_user(struct duda_ctx *d, const struct oidc_provider *p, mk_str sub)
{
    return duda_sprintf(d, "%.*s:%.*s", MK_STR_ARG(p->settings->base.name), MK_STR_ARG(sub));
}

mk_str oidc_session_alias(struct duda_ctx *d, const struct oidc_provider *p, mk_str sid)
{
    return duda_sprintf(d, "oidc %.*s:%.*s", MK_STR_ARG(p->settings->base.name), MK_STR_ARG(sid));
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

duda_verdict oidc_redirect_with_query(struct duda_ctx *d, mk_str to, struct mk_buf *query)
{
    bool has_query = memchr(to.p, '?', to.len) != NULL, failed = query->failed;
    mk_str url = duda_sprintf(d, "%.*s%c%.*s", MK_STR_ARG(to), has_query ? '&' : '?',
                              MK_STR_ARG(mk_str_skip(mk_buf_str(query), 1)));
    mk_buf_free(query);
    return url.p && !failed ? duda_redirect(d, 303, url) : -ENOMEM;
}

/* Creates the values of an attempt, and stores them in the session. */
static int begin_attempt(struct duda_ctx *d, const struct oidc_provider *p,
                         const struct duda_oidc_request *request, struct attempt *a)
{
    *a = (struct attempt){.state = oidc_random_text(d),
                          .nonce = oidc_random_text(d),
                          .verifier = oidc_random_text(d),
                          .next = request->next.len <= NEXT_MAX ? request->next : MK_STR_NULL,
                          .acr_values = request->acr_values,
                          .max_age = MK_STR_NULL};
    if (request->max_age_s && !(a->max_age = duda_sprintf(d, "%u", (unsigned)request->max_age_s)).p)
        return -ENOMEM;
    int e = a->state.p && a->nonce.p && a->verifier.p ? oidc_session_put(d, p, "state", a->state) : -ENOMEM;
    e = e ? e : oidc_session_put(d, p, "nonce", a->nonce);
    e = e ? e : oidc_session_put(d, p, "verifier", a->verifier);
    e = e ? e : oidc_session_put(d, p, "next", a->next);
    e = e ? e : oidc_session_put(d, p, "max_age", a->max_age);
    return e ? e : oidc_session_put(d, p, "acr", a->acr_values);
}

static void add_optional_field(struct mk_buf *out, const char *name, mk_str value)
{
    if (value.len)
        oidc_add_field(out, name, value);
}

static duda_verdict redirect_to_provider(struct duda_ctx *d, const struct oidc_provider *p,
                                         const struct duda_oidc_request *request, const struct attempt *a)
{
    struct mk_buf query = mk_buf_growing(8192);
    oidc_add_field(&query, "response_type", MK_STR("code"));
    oidc_add_field(&query, "scope", p->settings->scope);
    oidc_add_field(&query, "client_id", p->settings->client);
    oidc_add_field(&query, "redirect_uri", p->settings->redirect_url);
    oidc_add_field(&query, "state", a->state);
    oidc_add_field(&query, "nonce", a->nonce);
    oidc_add_field(&query, "code_challenge", sha256_text(d, a->verifier));
    oidc_add_field(&query, "code_challenge_method", MK_STR("S256"));
    add_optional_field(&query, "prompt", request->prompt);
    add_optional_field(&query, "login_hint", request->login_hint);
    add_optional_field(&query, "acr_values", request->acr_values);
    add_optional_field(&query, "ui_locales", request->ui_locales);
    add_optional_field(&query, "max_age", a->max_age);
    return oidc_redirect_with_query(d, p->endpoints.authorization, &query);
}

duda_verdict duda_oidc_log_in_with_sized(struct duda_ctx *d, const struct duda_oidc_login *login,
                                         const struct duda_oidc_request *request, size_t request_size)
{
    struct duda_oidc_request full;
    request = mk_sized_in(&full, sizeof full, request, request_size);
    struct oidc_provider *p = oidc_provider_find(d, (login ? login : &plain_login)->provider);
    struct attempt a;
    if (!p)
        return -ENODEV;
    int e = oidc_discover(d, p);
    if (e)
        return oidc_fail(d, p, e);
    e = begin_attempt(d, p, request, &a);
    return e ? e : redirect_to_provider(d, p, request, &a);
}

duda_verdict duda_oidc_log_in(struct duda_ctx *d)
{
    const struct duda_oidc_request request = {.next = duda_query(d, "next")};
    return duda_oidc_log_in_with(d, login_of(d), &request);
}

/* ---- Checks of the ID token ---- */

/* A token for several audiences must name this client in `azp`. The verification has already checked that
 * `aud` contains this client. */
static bool is_for_client(const struct claims *c, mk_str client)
{
    bool is_one = !mk_str_starts(c->aud, MK_STR("[")) || mk_str_find(c->aud, ',') == MK_STR_NONE;
    return c->azp.p ? mk_str_eq(c->azp, client) : is_one;
}

/* Has the user authenticated recently enough for the `max_age` of the request? */
static bool is_recent(struct duda_ctx *d, const struct oidc_provider *p, const struct claims *c,
                      mk_str max_age)
{
    int64_t limit = 0, leeway = p->settings->leeway_ms / 1000;
    for (size_t i = 0; i < max_age.len; i++)
        limit = 10 * limit + (max_age.p[i] - '0');
    return !max_age.p || (c->auth_time > 0 && c->auth_time <= INT64_MAX / 2 &&
                          c->auth_time + limit + leeway >= oidc_now(d));
}

static bool has_acr(const struct claims *c, mk_str acr_values)
{
    mk_str word;
    if (!acr_values.len)
        return true;
    while ((word = mk_str_word(&acr_values)).len)
        if (mk_str_eq(word, c->acr))
            return true;
    return false;
}

/* Not inlined, so that the caller's frame, which exists while the handler waits, has no space for the errors. */
static __attribute__((noinline)) int check_claims(struct duda_ctx *d, const struct oidc_provider *p,
                                                  mk_str json, const struct attempt *a, struct claims *out)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors;
    if (duda_json_read(json, &claims_schema, &memory, NULL, out, &errors))
        return oidc_refuse(d, 403, "the ID token lacks a claim");
    if (!a->nonce.p || !mk_consttime_eq(out->nonce, a->nonce) || !is_for_client(out, p->settings->client))
        return oidc_refuse(d, 403, "the ID token is not for this login");
    if (!is_recent(d, p, out, a->max_age))
        return oidc_refuse(d, 403, "the user authenticated too long ago");
    if (!has_acr(out, a->acr_values))
        return oidc_refuse(d, 403, "the user has not authenticated in the requested way");
    return 0;
}

/* ---- Callback ---- */

static duda_verdict redirect_home(struct duda_ctx *d, mk_str next)
{
    const char *home = login_of(d)->home;
    return next.len ? duda_redirect_local(d, 303, next)
                    : duda_redirect(d, 303, duda_mount_url(d, mk_str_from_c(home ? home : "/")));
}

/* Records the provider's session, for a logout token that has only this ID. Sessions in cookies cannot be
 * revoked, with or without it. */
static int add_session_alias(struct duda_ctx *d, const struct oidc_provider *p, mk_str sid)
{
    mk_str alias = sid.len ? oidc_session_alias(d, p, sid) : MK_STR_NULL;
    int e = alias.p ? duda_session_add_alias(d, alias) : sid.len ? -ENOMEM : 0;
    return e == -ENOTSUP ? 0 : e;
}

static duda_verdict log_in_user(struct duda_ctx *d, struct oidc_provider *p, const struct claims *claims,
                                mk_str json, const struct oidc_token_response *tokens)
{
    const struct duda_oidc_login *login = login_of(d);
    mk_str user = oidc_user(d, p, claims->sub), id_token;
    int e = user.p ? duda_session_log_in(d, user) : -ENOMEM;
    e = e ? e : add_session_alias(d, p, claims->sid);
    e = e ? e : oidc_keep_tokens(d, p, tokens, claims->sub);
    if (!e && login->on_login && (e = login->on_login(d, user, json)) != 0) {
        (void)oidc_drop_tokens(d, p, &id_token);
        int lost = duda_session_destroy(d);
        e = lost ? lost : e;
    }
    return e;
}

static duda_verdict finish_login(struct duda_ctx *d, struct oidc_provider *p, const struct attempt *a)
{
    struct claims claims = {.azp = MK_STR_NULL};
    struct oidc_token_response tokens;
    mk_str json = MK_STR_NULL;
    int e = oidc_exchange_code(d, p, duda_query(d, "code"), a->verifier, &tokens);
    e = e ? e : oidc_verify_token(d, p, tokens.id_token, &json);
    if (e == -EKEYREJECTED)
        return oidc_refuse_with_reason(d, 403, "the ID token is invalid");
    if (e)
        return oidc_fail(d, p, e);
    e = check_claims(d, p, json, a, &claims);
    e = e ? e : log_in_user(d, p, &claims, json, &tokens);
    return e ? e : redirect_home(d, a->next);
}

static int take_attempt(struct duda_ctx *d, const struct oidc_provider *p, struct attempt *a)
{
    int e = oidc_session_take(d, p, "state", &a->state);
    e = e ? e : oidc_session_take(d, p, "nonce", &a->nonce);
    e = e ? e : oidc_session_take(d, p, "verifier", &a->verifier);
    e = e ? e : oidc_session_take(d, p, "next", &a->next);
    e = e ? e : oidc_session_take(d, p, "max_age", &a->max_age);
    return e ? e : oidc_session_take(d, p, "acr", &a->acr_values);
}

/* The `iss` of the response (RFC 9207) shows which provider has sent it. A provider that announces the
 * parameter must send it, so that an attacker cannot leave it out. */
static bool is_from_provider(struct duda_ctx *d, const struct oidc_provider *p)
{
    mk_str issuer = duda_query(d, "iss");
    return issuer.p ? mk_str_eq(issuer, p->settings->base.location) : !p->endpoints.sends_issuer;
}

static duda_verdict answer_error(struct duda_ctx *d)
{
    const struct duda_oidc_login *login = login_of(d);
    mk_str error = duda_query(d, "error");
    return login->on_error && error.len && error.len <= ERROR_MAX
               ? login->on_error(d, error)
               : oidc_refuse(d, 403, "the provider has not logged the user in");
}

duda_verdict duda_oidc_callback(struct duda_ctx *d)
{
    struct oidc_provider *p = oidc_provider_find(d, login_of(d)->provider);
    struct attempt a = {.state = MK_STR_NULL};
    if (!p)
        return -ENODEV;
    int e = take_attempt(d, p, &a);
    if (e)
        return e;
    if (!a.state.p || !mk_consttime_eq(a.state, duda_query(d, "state")))
        return oidc_refuse(d, 403, "this does not answer a login that this browser began");
    e = oidc_discover(d, p);
    if (e)
        return oidc_fail(d, p, e);
    if (!is_from_provider(d, p))
        return oidc_refuse(d, 403, "the response comes from another provider");
    return duda_query(d, "code").len ? finish_login(d, p, &a) : answer_error(d);
}
