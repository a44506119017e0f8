/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a provider: its discovery document, its keys, and tokens. The functions also work in tasks, so
 * they write no response. */
#include <duda/body.h>
#include <duda/error.h>
#include <duda/json.h>
#include <duda/lock.h>
#include <duda/memory.h>
#include <duda/request.h>
#include <errno.h>
#include <monkey/text.h>
#include <stdio.h>
#include <string.h>

#include "oidc.h"

enum { REASON_MAX = 400, TOKEN_MAX = 32 * 1024, KEPT_S = 3600, LOCK_MS = 15000 };

static const struct duda_schema_field endpoint_fields[] = {
    DUDA_STRING(struct oidc_endpoints, issuer, .max_length = OIDC_URL_MAX),
    DUDA_STRING(struct oidc_endpoints, authorization, .json_name = "authorization_endpoint",
                .max_length = OIDC_URL_MAX),
    DUDA_STRING(struct oidc_endpoints, token, .json_name = "token_endpoint", .max_length = OIDC_URL_MAX),
    DUDA_STRING(struct oidc_endpoints, keys, .json_name = "jwks_uri", .max_length = OIDC_URL_MAX),
    DUDA_STRING(struct oidc_endpoints, end, .json_name = "end_session_endpoint", .max_length = OIDC_URL_MAX,
                .optional = true),
    DUDA_BOOL(struct oidc_endpoints, sends_issuer,
              .json_name = "authorization_response_iss_parameter_supported", .optional = true),
};
static const struct duda_schema endpoints_schema =
    DUDA_SCHEMA(struct oidc_endpoints, endpoint_fields, .allow_unknown = true);

static const struct duda_schema_field token_fields[] = {
    DUDA_STRING(struct oidc_token_response, id_token, .max_length = TOKEN_MAX, .optional = true),
    DUDA_STRING(struct oidc_token_response, access_token, .max_length = TOKEN_MAX, .optional = true),
    DUDA_STRING(struct oidc_token_response, refresh_token, .max_length = TOKEN_MAX, .optional = true),
    DUDA_JSON_RAW(struct oidc_token_response, expires_in, .optional = true),
};
static const struct duda_schema tokens_schema =
    DUDA_SCHEMA(struct oidc_token_response, token_fields, .allow_unknown = true);

struct error_response {
    mk_str error;
};
static const struct duda_schema_field error_fields[] = {
    DUDA_STRING(struct error_response, error, .max_length = TOKEN_MAX)};
static const struct duda_schema error_schema =
    DUDA_SCHEMA(struct error_response, error_fields, .allow_unknown = true);

static const struct package_type *provider_kind;

void oidc_provider_set_kind(const struct package_type *kind)
{
    provider_kind = kind;
}

struct oidc_provider *oidc_provider_find(struct duda_ctx *d, const char *name)
{
    return package_find_instance(provider_kind, d, name);
}

int64_t oidc_now(struct duda_ctx *d)
{
    return (int64_t)mk_worker_now(duda_worker(d));
}

/* ---- Failures ---- */

duda_verdict oidc_refuse(struct duda_ctx *d, unsigned status, const char *message)
{
    duda_log(d, MK_LOG_WARN, "OpenID Connect: %s", message);
    return duda_error(d, status, "%s", message);
}

duda_verdict oidc_refuse_with_reason(struct duda_ctx *d, unsigned status, const char *message)
{
    char reason[REASON_MAX];
    snprintf(reason, sizeof reason, "%s", duda_error_reason(d) ? duda_error_reason(d) : "unknown reason");
    duda_log(d, MK_LOG_WARN, "OpenID Connect: %s: %s", message, reason);
    int e = duda_error(d, status, "%s", message);
    return duda_reason(d, e, "%s: %s", message, reason);
}

duda_verdict oidc_fail(struct duda_ctx *d, const struct oidc_provider *p, int error)
{
    return error == -EHOSTUNREACH ? oidc_refuse_with_reason(d, 502, p->problem) : error;
}

/* Returns -ENOMEM, or the error of a cancelled handler, unchanged. Any other error means that the provider
 * failed: records the problem, and returns -EHOSTUNREACH. */
static int provider_error(struct duda_ctx *d, struct oidc_provider *p, int e, const char *problem)
{
    if (e == -ENOMEM || duda_cancelled(d))
        return e;
    p->problem = problem;
    if (!duda_error_reason(d))
        (void)duda_reason(d, -EHOSTUNREACH, "%s", strerror(-e));
    return -EHOSTUNREACH;
}

/* Returns whether the issuer has an https URL. Its endpoints must then have https URLs, too. */
static bool is_secure(const struct oidc_provider *p)
{
    return mk_str_starts(p->settings->base.location, MK_STR("https://"));
}

static struct package_jwks_server server_of(const struct oidc_provider *p)
{
    return (struct package_jwks_server){.client = p->settings->http_client, .secure = is_secure(p)};
}

/* Sends a request; the response must have the status 200 and fit the schema. If `refusal` is not NULL, it
 * receives the `error` of a response with the status 400 or 401, and the result is -EKEYREJECTED. */
static int fetch_json(struct duda_ctx *d, struct oidc_provider *p, mk_str url,
                      struct duda_http_request *request, const struct duda_schema *schema, void *out,
                      struct error_response *refusal)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors;
    struct duda_http_response *response = duda_alloc(d, sizeof *response); /* too large for the stack */
    int e = response ? package_jwks_fetch(d, url, server_of(p), request, response) : -ENOMEM;
    if (e)
        return provider_error(d, p, e, "the request to the provider failed");
    bool is_refusal = refusal && (response->status == 400 || response->status == 401);
    if (response->status != 200 && !is_refusal)
        return provider_error(d, p, -EPROTO, "the provider rejected the request");
    e = duda_json_read(response->body, is_refusal ? &error_schema : schema, &memory, NULL,
                       is_refusal ? refusal : out, &errors);
    if (e)
        return provider_error(d, p, e, "the provider's response has an unexpected form");
    return is_refusal ? -EKEYREJECTED : 0;
}

/* ---- Discovery ---- */

static mk_str keep_text(struct oidc_provider *p, unsigned i, mk_str text)
{
    if (!text.p)
        return text;
    memcpy(p->text[i], text.p, text.len);
    return mk_str_of(p->text[i], text.len);
}

static int fetch_endpoints(struct duda_ctx *d, struct oidc_provider *p)
{
    mk_str issuer = p->settings->base.location;
    struct oidc_endpoints found = {.end = MK_STR_NULL};
    struct duda_http_request request = {.method = MK_STR_NULL};
    mk_str url = duda_sprintf(d, "%.*s%s.well-known/openid-configuration", MK_STR_ARG(issuer),
                              mk_str_ends(issuer, MK_STR("/")) ? "" : "/");
    int e = url.p ? fetch_json(d, p, url, &request, &endpoints_schema, &found, NULL) : -ENOMEM;
    if (!e && !mk_str_eq(found.issuer, issuer))
        e = provider_error(d, p, -EPROTO, "the issuer of the provider is not the configured one");
    if (e)
        return e;
    p->endpoints = (struct oidc_endpoints){.issuer = issuer,
                                           .authorization = keep_text(p, 0, found.authorization),
                                           .token = keep_text(p, 1, found.token),
                                           .keys = keep_text(p, 2, found.keys),
                                           .end = keep_text(p, 3, found.end),
                                           .sends_issuer = found.sends_issuer};
    p->endpoints_at = oidc_now(d);
    return 0;
}

static int fetch_keys(struct duda_ctx *d, struct oidc_provider *p)
{
    int e = package_jwks_ensure(d, &p->jwks, p->endpoints.keys, server_of(p));
    if (!e || duda_cancelled(d))
        return e;
    p->endpoints_at = 0; /* the URL of the keys may have changed */
    p->jwks.failed_at = 0;
    return provider_error(d, p, e, "the provider's keys cannot be fetched");
}

int oidc_discover(struct duda_ctx *d, struct oidc_provider *p)
{
    mk_str lock = duda_sprintf(d, "oidc %.*s", MK_STR_ARG(p->settings->base.name));
    int e = lock.p ? duda_lock(d, lock, LOCK_MS) : -ENOMEM;
    if (e)
        return e;
    if (!p->endpoints_at || oidc_now(d) - p->endpoints_at > KEPT_S)
        e = fetch_endpoints(d, p);
    if (!e)
        e = fetch_keys(d, p);
    duda_unlock(d, lock);
    return e;
}

/* ---- Tokens ---- */

void oidc_add_field(struct mk_buf *out, const char *name, mk_str value)
{
    mk_buf_addf(out, "&%s=", name);
    mk_url_escape(out, value);
}

/* Writes the header Authorization of the client (RFC 6749, section 2.3.1). */
static void write_client_credentials(const struct oidc_settings *s, struct mk_buf *pair, struct mk_buf *out)
{
    mk_url_escape(pair, s->client);
    mk_buf_add_char(pair, ':');
    mk_url_escape(pair, s->secret);
    mk_buf_add(out, MK_STR("Basic "));
    mk_base64_encode(out, mk_buf_str(pair));
}

/* Sends the form, which begins with the grant type, and the credentials of the client to the token
 * endpoint. */
static int request_tokens(struct duda_ctx *d, struct oidc_provider *p, struct mk_buf *form,
                          struct oidc_token_response *out, struct error_response *refusal)
{
    const struct oidc_settings *s = p->settings;
    struct mk_buf pair = mk_buf_growing(8192), field = mk_buf_growing(16384);
    oidc_add_field(form, "client_id", s->client);
    write_client_credentials(s, &pair, &field);
    bool failed = form->failed || pair.failed || field.failed;
    const struct mk_header basic = {MK_STR("Authorization"), duda_strdup(d, mk_buf_str(&field))};
    struct duda_http_request request = {.method = MK_STR("POST"),
                                        .headers = &basic,
                                        .n_headers = s->secret.p ? 1 : 0,
                                        .content_type = MK_STR("application/x-www-form-urlencoded"),
                                        .body = duda_strdup(d, mk_buf_str(form))};
    mk_buf_free(&pair);
    mk_buf_free(&field);
    *out = (struct oidc_token_response){.id_token = MK_STR_NULL};
    if (failed)
        return provider_error(d, p, -E2BIG, "the request for tokens is too long");
    return request.body.p && basic.value.p
               ? fetch_json(d, p, p->endpoints.token, &request, &tokens_schema, out, refusal)
               : -ENOMEM;
}

int oidc_exchange_code(struct duda_ctx *d, struct oidc_provider *p, mk_str code, mk_str verifier,
                       struct oidc_token_response *out)
{
    struct mk_buf form = mk_buf_growing(16384);
    mk_buf_add(&form, MK_STR("grant_type=authorization_code"));
    oidc_add_field(&form, "code", code);
    oidc_add_field(&form, "redirect_uri", p->settings->redirect_url);
    oidc_add_field(&form, "code_verifier", verifier);
    int e = request_tokens(d, p, &form, out, NULL);
    mk_buf_free(&form);
    return !e && !out->id_token.len ? provider_error(d, p, -EPROTO, "the provider has sent no ID token") : e;
}

int oidc_refresh_tokens(struct duda_ctx *d, struct oidc_provider *p, mk_str refresh_token,
                        struct oidc_token_response *out)
{
    struct mk_buf form = mk_buf_growing(3 * TOKEN_MAX + 8192);
    struct error_response refusal = {.error = MK_STR_NULL};
    mk_buf_add(&form, MK_STR("grant_type=refresh_token"));
    oidc_add_field(&form, "refresh_token", refresh_token);
    int e = request_tokens(d, p, &form, out, &refusal);
    mk_buf_free(&form);
    if (e == -EKEYREJECTED && !mk_str_eq(refusal.error, MK_STR("invalid_grant")))
        return provider_error(d, p, e, "the provider rejected the request for new tokens");
    return !e && !out->access_token.len
               ? provider_error(d, p, -EPROTO, "the provider has sent no access token")
               : e;
}

int oidc_verify_token(struct duda_ctx *d, struct oidc_provider *p, mk_str token, mk_str *json)
{
    char reason_buf[REASON_MAX];
    struct mk_buf claims = mk_buf_growing(OIDC_CLAIMS_MAX),
                  reason = mk_buf_fixed(reason_buf, sizeof reason_buf);
    const struct duda_jwt_rules rules = {.now = oidc_now(d),
                                         .leeway_s = p->settings->leeway_ms / 1000,
                                         .issuer = p->settings->base.location,
                                         .audience = p->settings->client,
                                         .reason = &reason};
    int e = package_jwks_verify(d, &p->jwks, p->endpoints.keys, server_of(p), &claims, token, &rules);
    *json = e ? MK_STR_NULL : duda_strdup(d, mk_buf_str(&claims));
    mk_buf_free(&claims);
    if (e == -EBADMSG || e == -EKEYREJECTED || e == -EKEYEXPIRED || e == -EKEYREVOKED)
        return duda_reason(d, -EKEYREJECTED, "%.*s", MK_STR_ARG(mk_buf_str(&reason)));
    if (e)
        return provider_error(d, p, e, "the provider's keys cannot be fetched");
    return json->p ? 0 : -ENOMEM;
}
