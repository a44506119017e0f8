/* SPDX-License-Identifier: Apache-2.0 */
#include "jwt.h"

#include <duda/error.h>
#include <duda/json.h>
#include <duda/memory.h>
#include <duda/middleware.h>
#include <duda/request.h>
#include <errno.h>
#include <monkey/text.h>
#include <stdio.h>

enum { CLAIMS_MAX = 32 * 1024, REASON_MAX = 400 };

/* ---- Claims ---- */

static const struct duda_value *find_member(const struct duda_value *map, mk_str name)
{
    for (size_t i = 0; map->kind == DUDA_VALUE_MAP && i < map->n; i++)
        if (mk_str_eq(mk_str_from_c(map->of.map[i].name), name))
            return &map->of.map[i].value;
    return NULL;
}

/* The path may also be the name of a single member that contains dots, such as a URL. */
static const struct duda_value *find_claim(const struct duda_value *claims, mk_str path)
{
    const struct duda_value *found = find_member(claims, path);
    if (found)
        return found;
    found = claims;
    while (found && path.len)
        found = find_member(found, mk_str_cut(&path, '.'));
    return found == claims ? NULL : found;
}

static int parse_claims(struct duda_ctx *d, mk_str json, struct duda_value *out)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors;
    int e = duda_json_read_value(json, &memory, NULL, out, &errors);
    return e == -ENOMEM ? e : e ? -EBADMSG : 0;
}

int duda_claim(struct duda_ctx *d, const char *path, struct duda_value *out)
{
    const struct duda_identity *identity = duda_identity(d);
    struct duda_value claims;
    *out = duda_value_null();
    if (!identity || !identity->claims.p)
        return -ENOENT;
    int e = parse_claims(d, identity->claims, &claims);
    const struct duda_value *found = e ? NULL : find_claim(&claims, mk_str_from_c(path));
    if (found)
        *out = *found;
    return e ? e : found ? 0 : -ENOENT;
}

static size_t count_words(mk_str text)
{
    size_t n = 0;
    while (mk_str_word(&text).len)
        n++;
    return n;
}

/* Reads the roles from a string of words, or from a list of strings. */
static int read_roles(struct duda_ctx *d, const struct duda_value *v, struct duda_identity *out)
{
    bool is_list = v && v->kind == DUDA_VALUE_LIST, is_text = v && v->kind == DUDA_VALUE_TEXT;
    size_t max = is_list ? v->n : is_text ? count_words(v->of.text) : 0;
    mk_str *roles = max ? duda_alloc(d, max * sizeof *roles) : NULL;
    if (max && !roles)
        return -ENOMEM;
    out->roles = roles;
    if (is_text) {
        mk_str rest = v->of.text, word;
        while ((word = mk_str_word(&rest)).len)
            roles[out->n_roles++] = word;
    }
    for (size_t i = 0; is_list && i < v->n; i++)
        if (v->of.list[i].kind == DUDA_VALUE_TEXT)
            roles[out->n_roles++] = v->of.list[i].of.text;
    return 0;
}

static int read_identity(struct duda_ctx *d, const struct jwt_section *section, mk_str json,
                         struct duda_identity *out)
{
    struct duda_value claims;
    int e = parse_claims(d, json, &claims);
    if (e)
        return e;
    const struct duda_value *sub = find_member(&claims, MK_STR("sub"));
    if (!sub || sub->kind != DUDA_VALUE_TEXT || !sub->of.text.len)
        return duda_reason(d, -EKEYREJECTED, "`sub` is missing");
    *out = (struct duda_identity){.user = sub->of.text, .claims = json, .scheme = "Bearer"};
    return read_roles(d, find_claim(&claims, section->settings->roles_claim), out);
}

/* ---- Middleware ---- */

static int verify_token(struct duda_ctx *d, struct jwt_section *section, mk_str token, mk_str *json)
{
    const struct jwt_settings *s = section->settings;
    char reason_buf[REASON_MAX];
    struct mk_buf claims = mk_buf_growing(CLAIMS_MAX), reason = mk_buf_fixed(reason_buf, sizeof reason_buf);
    const struct duda_jwt_rules rules = {.now = (int64_t)mk_worker_now(duda_worker(d)),
                                         .leeway_s = s->leeway_ms / 1000,
                                         .issuer = s->base.location,
                                         .audience = s->audience,
                                         .reason = &reason};
    const struct package_jwks_server server = {.client = s->http_client,
                                               .secure = mk_str_starts(s->jwks_url, MK_STR("https://"))};
    int e = section->key
                ? duda_jwt_verify(&claims, section->key, token, &rules)
                : package_jwks_verify(d, &section->jwks, s->jwks_url, server, &claims, token, &rules);
    if (!e)
        *json = duda_strdup(d, mk_buf_str(&claims));
    mk_buf_free(&claims);
    if (e && reason.len)
        return duda_reason(d, e, "%.*s", MK_STR_ARG(mk_buf_str(&reason)));
    return e ? e : json->p ? 0 : -ENOMEM;
}

static bool is_invalid_token(int e)
{
    return e == -EBADMSG || e == -EKEYREJECTED || e == -EKEYEXPIRED || e == -EKEYREVOKED;
}

/* The client learns only that the token is invalid; the reason is for the log and for developers. */
static duda_verdict reject_token(struct duda_ctx *d, const struct jwt_section *section)
{
    char text[REASON_MAX];
    const char *reason = duda_error_reason(d);
    snprintf(text, sizeof text, "%s", reason ? reason : "it cannot be parsed");
    duda_log(d, MK_LOG_INFO, "the token of the client is invalid: %s", text);
    (void)duda_reason(d, 401, "the token is invalid: %s", text);
    return duda_auth_challenge(d, "Bearer", section->settings->realm.p, "invalid_token");
}

duda_verdict duda_auth_jwt(struct duda_ctx *d)
{
    struct jwt_section *section = jwt_section_find(d, duda_middleware_data(d));
    struct duda_identity identity;
    mk_str token = duda_auth_credentials(d, MK_STR("Bearer")), json = MK_STR_NULL;
    if (!section)
        return -ENODEV;
    if (!token.len)
        return duda_auth_challenge(d, "Bearer", section->settings->realm.p, NULL);
    int e = verify_token(d, section, token, &json);
    e = e ? e : read_identity(d, section, json, &identity);
    if (is_invalid_token(e))
        return reject_token(d, section);
    e = e ? e : duda_identity_set(d, &identity);
    return e ? e : DUDA_NEXT;
}
