/* SPDX-License-Identifier: Apache-2.0 */
/* Login with an OpenID provider (OpenID Connect Core 1.0): the authorization code flow with PKCE (RFC 7636).
 * The discovery document of the provider lists its endpoints and the URL of its keys. The service accepts an
 * ID token if one of these keys has signed it, its audience is this client, and its nonce belongs to this
 * login. Each worker caches the endpoints and keys for an hour. */
#define DUDA_USE      "duda-http"
#define DUDA_SETTINGS oidc_table
#include <duda.h>
#include <duda/crypto.h>
#include <duda/http.h>
#include <errno.h>

enum {
    URL_MAX = 500,
    TOKEN_MAX = 32 * 1024,
    SECRET_BYTES = 32,
    KEPT_S = 3600,
    REFETCH_MIN_S = 60,
    LEEWAY_S = 60
};

struct oidc {
    mk_str issuer, client, secret, site;
};

/* clang-format off */
#define TEXT(key, member, what)                                                                              \
    {.name = key, .type = MK_CONF_TEXT, MK_CONF_AT(struct oidc, member), .flags = MK_CONF_REQUIRED,          \
     .min = 1, .max = 200, .help = what}
/* clang-format on */
static const struct mk_conf_key oidc_keys[] = {
    TEXT("Issuer", issuer, "The provider, as it calls itself: https://login.example.org"),
    TEXT("Client", client, "What it calls us."),
    TEXT("Site", site, "Where our pages are: https://www.example.org. The provider must know Site/callback."),
    {.name = "Secret",
     .type = MK_CONF_CUSTOM,
     MK_CONF_AT(struct oidc, secret),
     .parse = duda_secret,
     .syntax = DUDA_SECRET_SYNTAX,
     .help = "Our password at the provider."},
};
static const struct mk_conf_table oidc_table = {.section = "OIDC",
                                                .keys = oidc_keys,
                                                .n = MK_LEN(oidc_keys),
                                                .size = sizeof(struct oidc),
                                                .help = "Log-in."};

/* ---- JSON of the provider: only the members that this service needs ---- */

struct endpoints {
    mk_str issuer, authorization, token, keys, end;
};
static const struct duda_schema_field endpoint_fields[] = {
    DUDA_STRING(struct endpoints, issuer, .max_length = URL_MAX),
    DUDA_STRING(struct endpoints, authorization, .json_name = "authorization_endpoint",
                .max_length = URL_MAX),
    DUDA_STRING(struct endpoints, token, .json_name = "token_endpoint", .max_length = URL_MAX),
    DUDA_STRING(struct endpoints, keys, .json_name = "jwks_uri", .max_length = URL_MAX),
    DUDA_STRING(struct endpoints, end, .json_name = "end_session_endpoint", .max_length = URL_MAX,
                .optional = true),
};
static const struct duda_schema endpoints_schema =
    DUDA_SCHEMA(struct endpoints, endpoint_fields, .allow_unknown = true);

struct tokens {
    mk_str id_token;
};
static const struct duda_schema_field token_fields[] = {
    DUDA_STRING(struct tokens, id_token, .max_length = TOKEN_MAX)};
static const struct duda_schema tokens_schema =
    DUDA_SCHEMA(struct tokens, token_fields, .allow_unknown = true);

struct claims {
    mk_str sub, nonce, name, azp, aud;
};
static const struct duda_schema_field claim_fields[] = {
    DUDA_STRING(struct claims, sub, .min_length = 1, .max_length = 255),
    DUDA_STRING(struct claims, nonce, .max_length = 100),
    DUDA_STRING(struct claims, name, .max_length = 255, .optional = true),
    DUDA_STRING(struct claims, azp, .max_length = 255, .optional = true),
    DUDA_JSON_RAW(struct claims, aud),
};
static const struct duda_schema claims_schema =
    DUDA_SCHEMA(struct claims, claim_fields, .allow_unknown = true);

/* The worker's cache of endpoints and keys. Thread-local, because in an embedding program workers are
 * threads. */
static _Thread_local struct {
    char room[4][URL_MAX + 1];
    struct endpoints endpoints;
    struct duda_jwks *keys;
    int64_t endpoints_at, keys_at, refetched_at;
} known;

static int64_t now(struct duda_ctx *d)
{
    return (int64_t)mk_worker_now(duda_worker(d));
}

static mk_str keep(unsigned i, mk_str text)
{
    if (!text.p)
        return text;
    memcpy(known.room[i], text.p, text.len);
    return mk_str_of(known.room[i], text.len);
}

static int refuse(struct duda_ctx *d, unsigned status, const char *message)
{
    duda_log(d, MK_LOG_WARN, "log-in: %s", message);
    return duda_problem(d, status, "%s", message);
}

/* ---- Requests to the provider ---- */

/* Uses the [HTTP_CLIENT] section whose Name is the host of the URL. */
static int ask(struct duda_ctx *d, mk_str url, struct duda_http_request *request, mk_str *content)
{
    const struct oidc *oidc = duda_settings(d);
    struct duda_http_response response;
    mk_str ours = oidc->issuer, rest = url;
    if (!mk_str_eq(mk_str_cut(&rest, ':'), mk_str_cut(&ours, ':')) || !mk_str_starts(rest, MK_STR("//")))
        return refuse(d, 502, "the provider names an address of another kind than its own");
    rest = mk_str_skip(rest, 2);
    mk_str host = duda_strdup(d, mk_str_cut(&rest, '/'));
    struct duda_http_client *http = host.p ? duda_http_find(d, host.p) : NULL;
    if (!http)
        return refuse(d, 502, "the provider names a host that has no section [HTTP_CLIENT]");
    request->target = duda_sprintf(d, "/%.*s", MK_STR_ARG(rest));
    int e = duda_http_fetch(d, http, request, &response);
    if (e == -ECANCELED)
        return e;
    if (e)
        duda_log(d, MK_LOG_WARN, "%.*s", MK_STR_ARG(response.error));
    if (e || response.status != 200)
        return refuse(d, 502, e ? "the provider does not answer" : "the provider refuses our request");
    *content = response.body;
    return 0;
}

static int ask_json(struct duda_ctx *d, mk_str url, struct duda_http_request *request,
                    const struct duda_schema *schema, void *out)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors;
    mk_str content;
    int e = ask(d, url, request, &content);
    if (!e && duda_json_read(content, schema, &memory, NULL, out, &errors))
        e = refuse(d, 502, "the provider's answer is not of the expected form");
    return e;
}

static int read_places(struct duda_ctx *d)
{
    const struct oidc *oidc = duda_settings(d);
    struct endpoints p = {.end = MK_STR_NULL};
    const char *slash = mk_str_ends(oidc->issuer, MK_STR("/")) ? "" : "/";
    mk_str url = duda_sprintf(d, "%.*s%s.well-known/openid-configuration", MK_STR_ARG(oidc->issuer), slash);
    int e = ask_json(d, url, &(struct duda_http_request){.method = MK_STR_NULL}, &endpoints_schema, &p);
    if (!e && !mk_str_eq(p.issuer, oidc->issuer))
        e = refuse(d, 502, "the provider calls itself otherwise than Issuer");
    if (e)
        return e;
    known.endpoints = (struct endpoints){.issuer = oidc->issuer,
                                         .authorization = keep(0, p.authorization),
                                         .token = keep(1, p.token),
                                         .keys = keep(2, p.keys),
                                         .end = keep(3, p.end)};
    known.endpoints_at = now(d);
    return 0;
}

static int read_keys(struct duda_ctx *d)
{
    mk_str text;
    int e = ask(d, known.endpoints.keys, &(struct duda_http_request){.method = MK_STR_NULL}, &text);
    if (e)
        return e;
    struct duda_jwks *keys = duda_jwks_new(text);
    if (!keys)
        return refuse(d, 502, "the provider's keys are not of the expected form");
    duda_jwks_free(known.keys);
    known.keys = keys;
    known.keys_at = now(d);
    return 0;
}

/* Fetches endpoints and keys that are missing or expired. Concurrent handlers wait for the first one. */
static int know(struct duda_ctx *d)
{
    int e = duda_lock(d, MK_STR("oidc"), 10000);
    if (e)
        return e;
    if (!known.endpoints_at || now(d) - known.endpoints_at > KEPT_S)
        e = read_places(d);
    if (!e && (!known.keys || now(d) - known.keys_at > KEPT_S))
        e = read_keys(d);
    if (e)
        known.endpoints_at = 0; /* the URL of the keys may have changed */
    duda_unlock(d, MK_STR("oidc"));
    return e;
}

/* Fetches the keys again after an unknown key: the provider may have added it. Rate-limited, because every
 * login attempt with an unknown key gets here. */
static int know_new_keys(struct duda_ctx *d)
{
    int e = duda_lock(d, MK_STR("oidc"), 10000); /* another handler may have fetched them */
    if (e)
        return e;
    bool is_too_soon = known.refetched_at && now(d) - known.refetched_at < REFETCH_MIN_S;
    if (!is_too_soon) {
        known.refetched_at = now(d);
        e = read_keys(d);
    }
    duda_unlock(d, MK_STR("oidc"));
    return e;
}

/* ---- Login, step 1: store state, nonce and PKCE verifier in the session; redirect to the provider ---- */

static mk_str secret(struct duda_ctx *d)
{
    char buf[64];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    duda_random_text(&out, SECRET_BYTES);
    return duda_strdup(d, mk_buf_str(&out));
}

static mk_str sha256(struct duda_ctx *d, mk_str text)
{
    char buf[64];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    struct duda_hash hash;
    if (duda_hash(DUDA_SHA256, text, &hash))
        return MK_STR_NULL;
    duda_base64url_encode(&out, duda_hash_str(&hash));
    return duda_strdup(d, mk_buf_str(&out));
}

/* Appends `&name=value`. */
static void add(struct mk_buf *out, const char *name, mk_str value)
{
    mk_buf_addf(out, "&%s=", name);
    mk_url_escape(out, value);
}

static mk_str callback(struct duda_ctx *d)
{
    const struct oidc *oidc = duda_settings(d);
    return duda_sprintf(d, "%.*s/callback", MK_STR_ARG(oidc->site));
}

static int go(struct duda_ctx *d, mk_str to, const struct mk_buf *query)
{
    bool has_query = memchr(to.p, '?', to.len) != NULL;
    mk_str url = duda_sprintf(d, "%.*s%c%.*s", MK_STR_ARG(to), has_query ? '&' : '?',
                              MK_STR_ARG(mk_str_skip(mk_buf_str(query), 1)));
    return url.p && !query->failed ? duda_redirect(d, 303, url) : -ENOMEM;
}

static int log_in(struct duda_ctx *d)
{
    const struct oidc *oidc = duda_settings(d);
    mk_str state = secret(d), nonce = secret(d), verifier = secret(d);
    char buf[2048];
    struct mk_buf query = mk_buf_fixed(buf, sizeof buf);
    int e = know(d);
    if (!e)
        e = duda_session_set(d, "state", state);
    if (!e)
        e = duda_session_set(d, "nonce", nonce);
    if (!e)
        e = duda_session_set(d, "verifier", verifier);
    if (e)
        return e;
    add(&query, "response_type", MK_STR("code"));
    add(&query, "scope", MK_STR("openid profile"));
    add(&query, "client_id", oidc->client);
    add(&query, "redirect_uri", callback(d));
    add(&query, "state", state);
    add(&query, "nonce", nonce);
    add(&query, "code_challenge", sha256(d, verifier));
    add(&query, "code_challenge_method", MK_STR("S256"));
    return go(d, known.endpoints.authorization, &query);
}

/* ---- Login, step 2: the provider redirects the browser to /callback ---- */

/* Removes a value from the session and returns it: it is valid for one attempt. */
static int take(struct duda_ctx *d, const char *name, mk_str *out)
{
    int e = duda_session_get(d, name, out);
    if (e)
        return e == -ENOENT ? 0 : e;
    *out = duda_strdup(d, *out);
    return out->p ? duda_session_set(d, name, MK_STR_NULL) : -ENOMEM;
}

static int buy(struct duda_ctx *d, mk_str code, mk_str verifier, struct tokens *out)
{
    const struct oidc *oidc = duda_settings(d);
    char form_buf[8192], pair_room[2048], field_room[3072] = "";
    struct mk_buf form = mk_buf_fixed(form_buf, sizeof form_buf);
    struct mk_buf pair = mk_buf_fixed(pair_room, sizeof pair_room);
    struct mk_buf field = mk_buf_fixed(field_room, sizeof field_room);
    mk_buf_add(&form, MK_STR("grant_type=authorization_code"));
    add(&form, "code", code);
    add(&form, "redirect_uri", callback(d));
    add(&form, "code_verifier", verifier);
    add(&form, "client_id", oidc->client);
    mk_url_escape(&pair, oidc->client);
    mk_buf_add_char(&pair, ':');
    mk_url_escape(&pair, oidc->secret);
    mk_buf_add(&field, MK_STR("Basic "));
    mk_base64_encode(&field, mk_buf_str(&pair));
    if (form.failed || pair.failed || field.failed)
        return 400;
    const struct mk_header basic = {MK_STR("Authorization"), mk_buf_str(&field)};
    struct duda_http_request request = {.method = MK_STR("POST"),
                                        .headers = &basic,
                                        .n_headers = oidc->secret.p ? 1 : 0,
                                        .content_type = MK_STR("application/x-www-form-urlencoded"),
                                        .body = mk_buf_str(&form)};
    return ask_json(d, known.endpoints.token, &request, &tokens_schema, out);
}

static int check(struct duda_ctx *d, struct mk_buf *json, mk_str token)
{
    const struct oidc *oidc = duda_settings(d);
    const struct duda_jwt_rules rules = {
        .now = now(d), .leeway_s = LEEWAY_S, .issuer = oidc->issuer, .audience = oidc->client};
    int e = duda_jwt_verify_jwks(json, known.keys, token, &rules);
    if (e == -EKEYREVOKED) {
        e = know_new_keys(d);
        if (e)
            return e;
        e = duda_jwt_verify_jwks(json, known.keys, token, &rules);
    }
    return e == -ENOMEM ? e : e ? refuse(d, 403, "the provider's token is not good") : 0;
}

/* A token for several audiences must name this client in `azp`. duda_jwt_verify_jwks() has already checked
 * that `aud` contains this client. */
static bool is_for_us(const struct claims *c, mk_str client)
{
    bool is_one = !mk_str_starts(c->aud, MK_STR("[")) || mk_str_find(c->aud, ',') == MK_STR_NONE;
    return c->azp.p ? mk_str_eq(c->azp, client) : is_one;
}

static int enter(struct duda_ctx *d, mk_str json, mk_str nonce)
{
    const struct oidc *oidc = duda_settings(d);
    const struct mk_allocator memory = duda_allocator_of(d);
    struct claims claims = {.name = MK_STR_NULL};
    struct duda_validation_errors errors;
    if (duda_json_read(json, &claims_schema, &memory, NULL, &claims, &errors))
        return refuse(d, 403, "the provider's token lacks something");
    if (!mk_consttime_eq(claims.nonce, nonce) || !is_for_us(&claims, oidc->client))
        return refuse(d, 403, "the provider's token is not for this log-in");
    int e = duda_session_regenerate(d); /* prevents session fixation */
    if (!e)
        e = duda_session_set(d, "user", claims.sub);
    if (!e)
        e = duda_session_set(d, "name", claims.name.len ? claims.name : claims.sub);
    return e ? e : duda_redirect(d, 303, MK_STR("/"));
}

static int come_back(struct duda_ctx *d)
{
    const struct oidc *oidc = duda_settings(d);
    struct mk_buf json = mk_buf_growing(TOKEN_MAX);
    struct tokens tokens = {.id_token = MK_STR_NULL};
    mk_str state, nonce, verifier, iss = duda_query(d, "iss"), code = duda_query(d, "code");
    int e = take(d, "state", &state);
    if (!e)
        e = take(d, "nonce", &nonce);
    if (!e)
        e = take(d, "verifier", &verifier);
    if (e)
        return e;
    if (!state.p || !mk_consttime_eq(state, duda_query(d, "state")) ||
        (iss.p && !mk_str_eq(iss, oidc->issuer))) /* RFC 9207 */
        return refuse(d, 403, "this is no answer to a log-in that began here");
    if (!code.len)
        return refuse(d, 403, "the provider has not logged you in");
    e = know(d);
    if (!e)
        e = buy(d, code, verifier, &tokens);
    if (!e)
        e = check(d, &json, tokens.id_token);
    if (!e)
        e = enter(d, mk_buf_str(&json), nonce);
    mk_buf_free(&json);
    return e;
}

/* ---- Pages ---- */

static int show(struct duda_ctx *d)
{
    mk_str name;
    int e = duda_session_get(d, "name", &name);
    if (e && e != -ENOENT)
        return e;
    const struct duda_entry page[] = {
        {"name", duda_value_text(name)},
        {"token", duda_value_text(duda_csrf_token(d))},
    };
    return duda_render(d, "oidc.html", duda_value_map(page, MK_LEN(page)));
}

static int log_out(struct duda_ctx *d)
{
    const struct oidc *oidc = duda_settings(d);
    char buf[1024];
    struct mk_buf query = mk_buf_fixed(buf, sizeof buf);
    int e = duda_session_destroy(d);
    if (e || !known.endpoints.end.p)
        return e ? e : duda_redirect(d, 303, MK_STR("/"));
    add(&query, "client_id", oidc->client);
    add(&query, "post_logout_redirect_uri", duda_sprintf(d, "%.*s/", MK_STR_ARG(oidc->site)));
    return go(d, known.endpoints.end, &query);
}

static void stop(struct mk_worker *worker)
{
    (void)worker;
    duda_jwks_free(known.keys);
    known.keys = NULL;
}

DUDA_SERVICE(oidc, DUDA_STOP(stop), DUDA_BEFORE(duda_csrf_check), DUDA_GET("/", show, "The page."),
             DUDA_GET("/in", log_in, "Sends the browser to the provider."),
             DUDA_GET("/callback", come_back, "Where the provider sends it back."),
             DUDA_POST("/out", log_out, "Logs out, here and there."));
