/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the package oidc. */
#ifndef OIDC_OIDC_H
#define OIDC_OIDC_H

#include <duda/oidc.h>

#include "common/package.h"
#include "common/package_jwks.h"
#include "common/package_wait_queue.h"

enum { OIDC_URL_MAX = 500, OIDC_SECRET_BYTES = 32, OIDC_SECRET_LEN = 43, OIDC_CLAIMS_MAX = 32 * 1024 };

struct oidc_settings {
    struct package_settings base; /* the location is the issuer */
    mk_str client, secret, redirect_url, logout_url, scope, token_store, http_client;
    uint32_t leeway_ms;
    bool is_checked; /* token_store has been checked */
};

/* The members of the discovery document that are used. */
struct oidc_endpoints {
    mk_str issuer, authorization, token, keys, end;
    bool sends_issuer; /* the provider adds `iss` to its redirects (RFC 9207) */
};

/* A refresh of an access token that is running in this worker. */
struct oidc_refresh {
    struct oidc_refresh *next;
    struct oidc_provider *p;
    struct duda_ctx *task;
    struct package_wait_queue waiters;
    char secret[OIDC_SECRET_LEN];
};

/* A provider in one worker. */
struct oidc_provider {
    const struct oidc_settings *settings;
    char text[4][OIDC_URL_MAX + 1]; /* memory for the URLs in `endpoints` */
    struct oidc_endpoints endpoints;
    int64_t endpoints_at;
    struct package_jwks jwks;
    struct oidc_refresh *refreshes;
    const char *problem; /* description of the last failure of the provider; set by provider.c */
};
/* Sets the package of providers. Called before workers start. */
void oidc_provider_set_kind(const struct package_type *kind);
struct oidc_provider *oidc_provider_find(struct duda_ctx *d, const char *name);

/* The user of the service with this subject of the provider, and the alias of that user for the provider's
 * session. Absent if out of memory. */
mk_str oidc_user(struct duda_ctx *d, const struct oidc_provider *p, mk_str sub);
mk_str oidc_session_alias(struct duda_ctx *d, const struct oidc_provider *p, mk_str sid);

int64_t oidc_now(struct duda_ctx *d);
/* Logs the message, and fails with it: see duda_error(). */
duda_verdict oidc_refuse(struct duda_ctx *d, unsigned status, const char *message);
/* The same; the log and developers also get the reason that duda_reason() has recorded. */
duda_verdict oidc_refuse_with_reason(struct duda_ctx *d, unsigned status, const char *message);
/* Converts an error of the functions below to the result of a handler: 502 if the provider failed. */
duda_verdict oidc_fail(struct duda_ctx *d, const struct oidc_provider *p, int error);

/* ---- provider.c: requests to the provider ---- */

/* All return 0; -EHOSTUNREACH: the provider failed, and `problem` describes how; -ENOMEM; or the error of a
 * failed wait. */

/* Fetches the endpoints and keys unless current ones are cached. */
int oidc_discover(struct duda_ctx *d, struct oidc_provider *p);

/* A response of the token endpoint. */
struct oidc_token_response {
    mk_str id_token, access_token, refresh_token;
    mk_str expires_in; /* raw JSON: some providers send a string */
};
/* Exchanges the authorization code for tokens. */
int oidc_exchange_code(struct duda_ctx *d, struct oidc_provider *p, mk_str code, mk_str verifier,
                       struct oidc_token_response *out);
/* Requests new tokens. Also returns -EKEYREJECTED: the provider refuses the refresh token. */
int oidc_refresh_tokens(struct duda_ctx *d, struct oidc_provider *p, mk_str refresh_token,
                        struct oidc_token_response *out);
/* Verifies signature, issuer, audience and expiry of a token, and sets *json to its claims. Also returns
 * -EKEYREJECTED: the token is invalid. */
int oidc_verify_token(struct duda_ctx *d, struct oidc_provider *p, mk_str token, mk_str *json);

/* Appends `&name=value`. */
void oidc_add_field(struct mk_buf *out, const char *name, mk_str value);

/* ---- login.c ---- */

/* Redirects the browser to a URL of the provider with the fields of the query, and frees the query. */
duda_verdict oidc_redirect_with_query(struct duda_ctx *d, mk_str to, struct mk_buf *query);

/* ---- session_value.c: values of the package in the session ---- */

/* Returns the name of a value that belongs to this provider; absent if out of memory. */
mk_str oidc_session_name(struct duda_ctx *d, const struct oidc_provider *p, const char *name);
/* Sets a value; an absent value removes it. */
int oidc_session_put(struct duda_ctx *d, const struct oidc_provider *p, const char *name, mk_str value);
/* Reads a value; absent if there is none. */
int oidc_session_get(struct duda_ctx *d, const struct oidc_provider *p, const char *name, mk_str *out);
/* Reads and removes a value. */
int oidc_session_take(struct duda_ctx *d, const struct oidc_provider *p, const char *name, mk_str *out);
/* Returns OIDC_SECRET_BYTES random bytes as text; absent if out of memory. */
mk_str oidc_random_text(struct duda_ctx *d);

/* ---- token_record.c: the tokens of a session in the store ---- */

/* The tokens of a session. */
struct oidc_tokens {
    mk_str access_token, refresh_token, id_token; /* absent: the provider has sent none */
    mk_str sub;
    int64_t refresh_at, expires_at; /* of the access token, seconds since 1970; 0: unknown */
    int64_t ends_at;                /* when the session ends */
};
/* Replaces the tokens by those of a response. Keeps the old refresh token or ID token if the response has
 * none. */
void oidc_tokens_update(struct duda_ctx *d, struct oidc_tokens *tokens,
                        const struct oidc_token_response *response);
/* Does [OIDC] name a store for tokens? */
static inline bool oidc_keeps_tokens(const struct oidc_provider *p)
{
    return p->settings->token_store.len > 0;
}
struct duda_store *oidc_token_store(struct duda_ctx *d, const struct oidc_provider *p);
/* The record of a session is encrypted with a key that is derived from the secret in the session. All return
 * 0, -ENOENT: there is no record that this secret decrypts, or the error of the store. */
int oidc_record_load(struct duda_ctx *d, const struct oidc_provider *p, mk_str secret,
                     struct oidc_tokens *out);
int oidc_record_create(struct duda_ctx *d, const struct oidc_provider *p, mk_str secret,
                       const struct oidc_tokens *tokens);
int oidc_record_replace(struct duda_ctx *d, const struct oidc_provider *p, mk_str secret,
                        const struct oidc_tokens *tokens);
int oidc_record_delete(struct duda_ctx *d, const struct oidc_provider *p, mk_str secret);
/* Returns the public name of the record: it does not reveal the secret. Absent if out of memory. */
mk_str oidc_record_id(struct duda_ctx *d, const struct oidc_provider *p, mk_str secret);

/* ---- access_token.c ---- */

/* Keeps the tokens of a new login in the store, if [OIDC] names one. */
int oidc_keep_tokens(struct duda_ctx *d, struct oidc_provider *p, const struct oidc_token_response *response,
                     mk_str sub);
/* Removes the tokens of the session, and sets *id_token to its ID token, or to an absent string. */
int oidc_drop_tokens(struct duda_ctx *d, const struct oidc_provider *p, mk_str *id_token);

#endif
