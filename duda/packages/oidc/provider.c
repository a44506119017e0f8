/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a provider: its discovery document, its keys, and tokens. */
#include <duda/body.h>
#include <duda/json.h>
#include <duda/lock.h>
#include <duda/memory.h>
#include <duda/request.h>
#include <errno.h>
#include <monkey/text.h>

#include "oidc.h"

enum { TOKEN_MAX = 32 * 1024, KEPT_S = 3600, LOCK_MS = 15000 };

static const struct duda_schema_field endpoint_fields[] = {
    DUDA_STRING(struct oidc_endpoints, issuer, .max_length = OIDC_URL_MAX),
    DUDA_STRING(struct oidc_endpoints, authorization, .json_name = "authorization_endpoint",
                .max_length = OIDC_URL_MAX),
    DUDA_STRING(struct oidc_endpoints, token, .json_name = "token_endpoint", .max_length = OIDC_URL_MAX),
    DUDA_STRING(struct oidc_endpoints, keys, .json_name = "jwks_uri", .max_length = OIDC_URL_MAX),
    DUDA_STRING(struct oidc_endpoints, end, .json_name = "end_session_endpoint", .max_length = OIDC_URL_MAX,
                .optional = true),
};
static const struct duda_schema endpoints_schema =
    DUDA_SCHEMA(struct oidc_endpoints, endpoint_fields, .allow_unknown = true);

struct tokens {
    mk_str id_token;
};
static const struct duda_schema_field token_fields[] = {
    DUDA_STRING(struct tokens, id_token, .max_length = TOKEN_MAX)};
static const struct duda_schema tokens_schema =
    DUDA_SCHEMA(struct tokens, token_fields, .allow_unknown = true);

static int64_t now_s(struct duda_ctx *d)
{
    return (int64_t)mk_worker_now(duda_worker(d));
}

duda_verdict oidc_refuse(struct duda_ctx *d, unsigned status, const char *message)
{
    duda_log(d, MK_LOG_WARN, "OpenID Connect: %s", message);
    return duda_problem(d, status, "%s", message);
}

/* Returns whether the issuer has an https URL. Its endpoints must then have https URLs, too. */
static bool is_secure(const struct oidc_provider *p)
{
    return mk_str_starts(p->settings->base.location, MK_STR("https://"));
}

static int fetch_json(struct duda_ctx *d, struct oidc_provider *p, mk_str url,
                      struct duda_http_request *request, const struct duda_schema *schema, void *out)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors;
    mk_str body;
    int e = package_jwks_fetch_url(d, url, is_secure(p), request, &body);
    if (e && (e == -ENOMEM || duda_cancelled(d)))
        return e;
    if (e)
        return oidc_refuse(d, 502, "the request to the provider failed");
    if (duda_json_read(body, schema, &memory, NULL, out, &errors))
        return oidc_refuse(d, 502, "the provider's response has an unexpected form");
    return 0;
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
    int e = url.p ? fetch_json(d, p, url, &request, &endpoints_schema, &found) : -ENOMEM;
    if (!e && !mk_str_eq(found.issuer, issuer))
        e = oidc_refuse(d, 502, "the provider has another issuer than the configuration");
    if (e)
        return e;
    p->endpoints = (struct oidc_endpoints){.issuer = issuer,
                                           .authorization = keep_text(p, 0, found.authorization),
                                           .token = keep_text(p, 1, found.token),
                                           .keys = keep_text(p, 2, found.keys),
                                           .end = keep_text(p, 3, found.end)};
    p->endpoints_at = now_s(d);
    return 0;
}

static int fetch_keys(struct duda_ctx *d, struct oidc_provider *p)
{
    int e = package_jwks_ensure(d, &p->jwks, p->endpoints.keys, is_secure(p));
    if (!e)
        return 0;
    p->endpoints_at = 0; /* the URL of the keys may have changed */
    p->jwks.failed_at = 0;
    return e == -ENOMEM || duda_cancelled(d) ? e
                                             : oidc_refuse(d, 502, "the provider's keys cannot be fetched");
}

int oidc_discover(struct duda_ctx *d, struct oidc_provider *p)
{
    mk_str lock = duda_sprintf(d, "oidc %.*s", MK_STR_ARG(p->settings->base.name));
    int e = lock.p ? duda_lock(d, lock, LOCK_MS) : -ENOMEM;
    if (e)
        return e;
    if (!p->endpoints_at || now_s(d) - p->endpoints_at > KEPT_S)
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

int oidc_exchange_code(struct duda_ctx *d, struct oidc_provider *p, mk_str code, mk_str verifier,
                       mk_str *id_token)
{
    const struct oidc_settings *s = p->settings;
    struct mk_buf form = mk_buf_growing(8192), pair = mk_buf_growing(8192), field = mk_buf_growing(16384);
    struct tokens tokens = {.id_token = MK_STR_NULL};
    mk_buf_add(&form, MK_STR("grant_type=authorization_code"));
    oidc_add_field(&form, "code", code);
    oidc_add_field(&form, "redirect_uri", s->redirect_url);
    oidc_add_field(&form, "code_verifier", verifier);
    oidc_add_field(&form, "client_id", s->client);
    write_client_credentials(s, &pair, &field);
    bool failed = form.failed || pair.failed || field.failed;
    const struct mk_header basic = {MK_STR("Authorization"), duda_strdup(d, mk_buf_str(&field))};
    struct duda_http_request request = {.method = MK_STR("POST"),
                                        .headers = &basic,
                                        .n_headers = s->secret.p ? 1 : 0,
                                        .content_type = MK_STR("application/x-www-form-urlencoded"),
                                        .body = duda_strdup(d, mk_buf_str(&form))};
    mk_buf_free(&form);
    mk_buf_free(&pair);
    mk_buf_free(&field);
    if (failed)
        return 400;
    int e = request.body.p && basic.value.p
                ? fetch_json(d, p, p->endpoints.token, &request, &tokens_schema, &tokens)
                : -ENOMEM;
    *id_token = tokens.id_token;
    return e;
}
