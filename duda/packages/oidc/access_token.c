/* SPDX-License-Identifier: Apache-2.0 */
/* Access tokens of sessions. A background task refreshes a token, because providers accept a refresh token
 * only once: if the browser disconnects during the refresh, the new tokens must still be stored. Requests of
 * one session share the task of their worker, and a lock in the store excludes the tasks of other workers and
 * machines. */
#include <duda/memory.h>
#include <duda/request.h>
#include <duda/session.h>
#include <duda/store.h>
#include <duda/task.h>
#include <errno.h>
#include <monkey/mem.h>
#include <openssl/crypto.h>

#include "oidc.h"

enum { REFRESH_MS = 30000, LOCK_TTL_MS = 60000 };

static const char secret_name[] = "tokens";

/* ---- The task ---- */

static bool is_fresh(struct duda_ctx *d, const struct oidc_tokens *t)
{
    return t->access_token.len && (!t->refresh_at || t->refresh_at > oidc_now(d));
}

static bool is_valid(struct duda_ctx *d, const struct oidc_tokens *t)
{
    return t->access_token.len && (!t->expires_at || t->expires_at > oidc_now(d));
}

struct id_claims {
    mk_str sub;
};
static const struct duda_schema_field id_fields[] = {
    DUDA_STRING(struct id_claims, sub, .max_length = OIDC_CLAIMS_MAX)};
static const struct duda_schema id_schema = DUDA_SCHEMA(struct id_claims, id_fields, .allow_unknown = true);

/* The ID token of a refresh must be for the same user (OpenID Connect Core, section 12.2). */
static int check_new_id_token(struct duda_ctx *d, struct oidc_provider *p, mk_str token, mk_str sub)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors;
    struct id_claims claims = {.sub = MK_STR_NULL};
    mk_str json;
    int e = oidc_verify_token(d, p, token, &json);
    if (e)
        return e;
    return !duda_json_read(json, &id_schema, &memory, NULL, &claims, &errors) && mk_str_eq(claims.sub, sub)
               ? 0
               : -EKEYREJECTED;
}

static int request_new_tokens(struct duda_ctx *d, struct oidc_provider *p, struct oidc_tokens *tokens)
{
    struct oidc_token_response response;
    int e = oidc_discover(d, p);
    e = e ? e : oidc_refresh_tokens(d, p, tokens->refresh_token, &response);
    if (!e && response.id_token.len)
        e = check_new_id_token(d, p, response.id_token, tokens->sub);
    if (!e)
        oidc_tokens_update(d, tokens, &response);
    return e;
}

/* Refreshes the tokens of the record, unless another worker has done so in the meantime. */
static int refresh_record(struct duda_ctx *d, struct oidc_provider *p, mk_str secret)
{
    struct oidc_tokens tokens;
    int e = oidc_record_load(d, p, secret, &tokens);
    if (e || is_fresh(d, &tokens))
        return e;
    e = request_new_tokens(d, p, &tokens);
    if (!e)
        return oidc_record_replace(d, p, secret, &tokens);
    if (e == -EKEYREJECTED) {
        duda_log(d, MK_LOG_INFO, "OpenID Connect: the provider refuses the refresh token of a session");
        int lost = oidc_record_delete(d, p, secret);
        return lost ? lost : -ENOENT;
    }
    if (e == -EHOSTUNREACH)
        duda_log(d, MK_LOG_WARN, "OpenID Connect: cannot refresh an access token: %s", p->problem);
    return e;
}

static int run_refresh(struct duda_ctx *d)
{
    const struct oidc_refresh *r = duda_task_context(d);
    struct duda_store_lock lock;
    mk_str secret = mk_str_of(r->secret, sizeof r->secret), id = oidc_record_id(d, r->p, secret);
    int e =
        id.p ? duda_store_lock(d, oidc_token_store(d, r->p), id, LOCK_TTL_MS, REFRESH_MS, &lock) : -ENOMEM;
    if (e)
        return e;
    e = refresh_record(d, r->p, secret);
    (void)!duda_store_unlock(d, &lock);
    return e;
}

/* ---- Waiting for the task ---- */

static void on_refresh_end(void *ctx, int result)
{
    struct oidc_refresh *r = ctx, **at = &r->p->refreshes;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    package_wait_queue_fail_all(&r->waiters, result);
    OPENSSL_cleanse(r->secret, sizeof r->secret);
    mk_mem_free(r);
}

static struct oidc_refresh *find_refresh(struct oidc_provider *p, mk_str secret)
{
    struct oidc_refresh *r = p->refreshes;
    while (r && !mk_consttime_eq(mk_str_of(r->secret, sizeof r->secret), secret))
        r = r->next;
    return r;
}

static int start_refresh(struct duda_ctx *d, struct oidc_provider *p, mk_str secret,
                         struct oidc_refresh **out)
{
    struct oidc_refresh *r = mk_mem_zalloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    r->p = p;
    package_wait_queue_init(&r->waiters);
    memcpy(r->secret, secret.p, sizeof r->secret);
    const struct duda_task task = {.name = "oidc refresh",
                                   .fn = run_refresh,
                                   .ctx = r,
                                   .deadline_ms = REFRESH_MS,
                                   .on_end = on_refresh_end};
    int e = duda_task_spawn(duda_worker(d), &task, &r->task);
    if (e) {
        mk_mem_free(r);
        return e;
    }
    r->next = p->refreshes;
    p->refreshes = r;
    *out = r;
    return 0;
}

static int refresh_and_wait(struct duda_ctx *d, struct oidc_provider *p, mk_str secret)
{
    struct oidc_refresh *r = find_refresh(p, secret);
    void *none;
    int e = r ? 0 : start_refresh(d, p, secret, &r);
    return e ? e : package_wait_queue_wait(&r->waiters, d, &none);
}

/* ---- For handlers ---- */

int oidc_keep_tokens(struct duda_ctx *d, struct oidc_provider *p, const struct oidc_token_response *response,
                     mk_str sub)
{
    struct oidc_tokens tokens = {.sub = sub};
    mk_str secret, old_id_token;
    if (!oidc_keeps_tokens(p))
        return 0;
    int e = oidc_drop_tokens(d, p, &old_id_token);
    e = e ? e : duda_session_expires_at(d, &tokens.ends_at);
    oidc_tokens_update(d, &tokens, response);
    secret = oidc_random_text(d);
    if (!secret.p)
        return -ENOMEM;
    e = e ? e : oidc_record_create(d, p, secret, &tokens);
    return e ? e : oidc_session_put(d, p, secret_name, secret);
}

int oidc_drop_tokens(struct duda_ctx *d, const struct oidc_provider *p, mk_str *id_token)
{
    struct oidc_tokens tokens;
    mk_str secret;
    *id_token = MK_STR_NULL;
    int e = oidc_keeps_tokens(p) ? oidc_session_take(d, p, secret_name, &secret) : -ENOENT;
    if (e || secret.len != OIDC_SECRET_LEN)
        return e == -ENOENT ? 0 : e;
    e = oidc_record_load(d, p, secret, &tokens);
    if (!e)
        *id_token = tokens.id_token;
    return e && e != -ENOENT ? e : oidc_record_delete(d, p, secret);
}

static int find_access_token(struct duda_ctx *d, struct oidc_provider *p, mk_str secret, mk_str *token)
{
    struct oidc_tokens tokens;
    int e = oidc_record_load(d, p, secret, &tokens);
    bool may_refresh = !e && tokens.refresh_token.len && !is_fresh(d, &tokens);
    if (may_refresh) {
        bool was_valid = is_valid(d, &tokens);
        e = refresh_and_wait(d, p, secret);
        if (e == -EHOSTUNREACH && was_valid)
            e = 0; /* the old token is still valid for a moment */
        e = e ? e : oidc_record_load(d, p, secret, &tokens);
    }
    if (!e && !is_valid(d, &tokens))
        e = -ENOENT;
    if (!e)
        *token = duda_strdup(d, tokens.access_token);
    return e ? e : token->p ? 0 : -ENOMEM;
}

int duda_oidc_access_token(struct duda_ctx *d, const char *provider, mk_str *token)
{
    struct oidc_provider *p = oidc_provider_find(d, provider);
    mk_str secret;
    *token = MK_STR_NULL;
    if (!p)
        return -ENODEV;
    if (!oidc_keeps_tokens(p))
        return duda_reason(d, -ENOTSUP, "[OIDC] %s has no TokenStore", p->settings->base.name.p);
    int e = oidc_session_get(d, p, secret_name, &secret);
    if (e)
        return e;
    e = secret.len == OIDC_SECRET_LEN ? find_access_token(d, p, secret, token) : -ENOENT;
    return e == -ENOENT ? -EKEYEXPIRED : e;
}
