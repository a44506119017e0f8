/* SPDX-License-Identifier: Apache-2.0 */
#include "package_jwks.h"

#include <duda/error.h>
#include <duda/memory.h>
#include <duda/request.h>
#include <duda/task.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>
#include <stdio.h>
#include <string.h>

#include "common/package_wait_queue.h"

enum {
    KEPT_S = 3600,      /* after this time, the keys are fetched again */
    KEPT_MAX_S = 86400, /* after this time, old keys are no longer used, even if the server is unavailable */
    REFETCH_MIN_S = 60, /* clients can send any number of tokens with unknown keys */
    RETRY_MIN_S = 5,    /* an unavailable server must not delay every request */
    FETCH_MS = 30000
};

static int64_t now_s(struct duda_ctx *d)
{
    return (int64_t)mk_worker_now(duda_worker(d));
}

/* ---- Requests ---- */

/* Splits "https://host:port/path" or, unless `secure`, "http://host:port/path". Returns false for any other
 * URL. */
static bool split_url(mk_str url, bool secure, mk_str *host, mk_str *path)
{
    bool is_https = mk_str_starts(url, MK_STR("https://"));
    if (is_https != secure || (!is_https && !mk_str_starts(url, MK_STR("http://"))))
        return false;
    *path = mk_str_skip(url, is_https ? 8 : 7);
    *host = mk_str_cut(path, '/');
    return host->len > 0;
}

void package_jwks_require_client(struct mk_config *config, const void *section, const char *key, mk_str url,
                                 mk_str client)
{
    mk_str host, path;
    if (client.len)
        duda_http_require(config, section, "HttpClient", client);
    else if (split_url(url, mk_str_starts(url, MK_STR("https://")), &host, &path))
        duda_http_require(config, section, key, host);
}

int package_jwks_fetch(struct duda_ctx *d, mk_str url, struct package_jwks_server server,
                       struct duda_http_request *request, struct duda_http_response *response)
{
    mk_str host, path;
    if (!split_url(url, server.secure, &host, &path))
        return duda_reason(d, -EHOSTUNREACH, "the scheme of the URL %.*s differs from that of the issuer",
                           MK_STR_ARG(url));
    host = duda_strdup(d, host);
    mk_str client = server.client.len ? duda_strdup(d, server.client) : host;
    if (server.client.len)
        request->url = url;
    else
        request->target = duda_sprintf(d, "/%.*s", MK_STR_ARG(path));
    if (!host.p || !client.p || (!request->url.p && !request->target.p))
        return -ENOMEM;
    struct duda_http_client *http = duda_http_find(d, client.p);
    if (!http)
        return duda_reason(d, -ENODEV, "no section [HTTP_CLIENT] has the Name %s", client.p);
    int e = duda_http_fetch(d, http, request, response);
    if (e && duda_cancelled(d))
        return e;
    if (e)
        return duda_reason(d, e == -ENOMEM ? e : -EHOSTUNREACH, "%s: %.*s", host.p,
                           MK_STR_ARG(response->error));
    if (response->status != 200)
        (void)duda_reason(d, -EHOSTUNREACH, "%s responds with %u to the request for /%.*s", host.p,
                          response->status, MK_STR_ARG(path));
    return 0;
}

/* ---- The task ---- */

/* Fetches the keys for all handlers of the worker. A task does so, because any client may leave during the fetch:
 * otherwise clients that leave could prevent that anyone gets keys. */
struct package_jwks_task {
    struct package_jwks *cache;
    struct package_jwks_server server;
    struct duda_ctx *d;
    struct package_wait_queue waiters;
    size_t url_len;
    char url[];
};

static int fetch_keys(struct duda_ctx *d, const struct package_jwks_task *task, struct duda_jwks **keys)
{
    struct duda_http_request request = {.method = MK_STR_NULL};
    struct duda_http_response response;
    mk_str url = mk_str_of(task->url, task->url_len);
    int e = package_jwks_fetch(d, url, task->server, &request, &response);
    if (duda_cancelled(d) == -ETIMEDOUT)
        return duda_reason(d, -EHOSTUNREACH, "the request for %.*s has taken too long", MK_STR_ARG(url));
    if (!e && response.status != 200)
        e = -EHOSTUNREACH;
    if (e)
        return e;
    *keys = duda_jwks_new(response.body);
    return *keys ? 0
                 : duda_reason(d, errno == ENOMEM ? -ENOMEM : -EHOSTUNREACH, "%.*s is not a JWK set",
                               MK_STR_ARG(url));
}

static int run_task(struct duda_ctx *d)
{
    const struct package_jwks_task *task = duda_task_context(d);
    struct package_jwks *cache = task->cache;
    struct duda_jwks *keys = NULL;
    int e = fetch_keys(d, task, &keys);
    cache->failed_at = e ? now_s(d) : 0;
    if (e) {
        const char *reason = duda_error_reason(d);
        snprintf(cache->problem, sizeof cache->problem, "%s", reason ? reason : strerror(-e));
        return e;
    }
    duda_jwks_free(cache->keys);
    cache->keys = keys;
    cache->fetched_at = now_s(d);
    return 0;
}

static void on_task_end(void *ctx, int result)
{
    struct package_jwks_task *task = ctx;
    task->cache->task = NULL;
    package_wait_queue_fail_all(&task->waiters, result);
    mk_mem_free(task);
}

static int start_task(struct duda_ctx *d, struct package_jwks *cache, mk_str url,
                      struct package_jwks_server server)
{
    struct package_jwks_task *task = mk_mem_zalloc(1, sizeof *task + url.len);
    if (!task)
        return -ENOMEM;
    *task = (struct package_jwks_task){.cache = cache, .server = server, .url_len = url.len};
    memcpy(task->url, url.p, url.len);
    package_wait_queue_init(&task->waiters);
    const struct duda_task options = {
        .name = "jwks fetch", .fn = run_task, .ctx = task, .deadline_ms = FETCH_MS, .on_end = on_task_end};
    int e = duda_task_spawn(duda_worker(d), &options, &task->d);
    if (e)
        mk_mem_free(task);
    else
        cache->task = task;
    return e;
}

static int wait_for_task(struct duda_ctx *d, struct package_jwks *cache)
{
    void *none;
    int e = package_wait_queue_wait(&cache->task->waiters, d, &none);
    return e && !duda_cancelled(d) ? duda_reason(d, e, "%s", cache->problem) : e;
}

/* ---- Keys ---- */

static int64_t keys_age_s(struct duda_ctx *d, const struct package_jwks *cache)
{
    return cache->keys ? now_s(d) - cache->fetched_at : INT64_MAX;
}

static bool has_just_failed(struct duda_ctx *d, const struct package_jwks *cache)
{
    return cache->failed_at && now_s(d) - cache->failed_at < RETRY_MIN_S;
}

/* Fetches the keys. If that fails, keeps the old ones for up to a day. While a fetch is running, or just after one
 * has failed, handlers continue with the old ones at once. */
int package_jwks_ensure(struct duda_ctx *d, struct package_jwks *cache, mk_str url,
                        struct package_jwks_server server)
{
    bool is_usable = keys_age_s(d, cache) < KEPT_MAX_S;
    if (keys_age_s(d, cache) < KEPT_S || (is_usable && (cache->task || has_just_failed(d, cache))))
        return 0;
    if (!cache->task && has_just_failed(d, cache))
        return duda_reason(d, -EHOSTUNREACH, "%s", cache->problem);
    int e = cache->task ? 0 : start_task(d, cache, url, server);
    e = e ? e : wait_for_task(d, cache);
    if (!e || !is_usable || duda_cancelled(d))
        return e;
    duda_log(d, MK_LOG_WARN, "keys at %.*s cannot be fetched again: continuing with the old ones",
             MK_STR_ARG(url));
    return 0;
}

/* Fetches the keys again, because a token has an unknown key. Waits for a fetch that is already running. */
static int fetch_new_keys(struct duda_ctx *d, struct package_jwks *cache, mk_str url,
                          struct package_jwks_server server)
{
    int e = 0;
    if (!cache->task && cache->refetched_at && now_s(d) - cache->refetched_at < REFETCH_MIN_S)
        return 0;
    if (!cache->task) {
        e = start_task(d, cache, url, server);
        cache->refetched_at = e ? cache->refetched_at : now_s(d);
    }
    return e ? e : wait_for_task(d, cache);
}

int package_jwks_verify(struct duda_ctx *d, struct package_jwks *cache, mk_str url,
                        struct package_jwks_server server, struct mk_buf *claims, mk_str token,
                        const struct duda_jwt_rules *rules)
{
    int e = package_jwks_ensure(d, cache, url, server);
    e = e ? e : duda_jwt_verify_jwks(claims, cache->keys, token, rules);
    if (e != -EKEYREVOKED)
        return e;
    e = fetch_new_keys(d, cache, url, server);
    if (!e && rules->reason)
        mk_buf_clear(rules->reason);
    return e ? e : duda_jwt_verify_jwks(claims, cache->keys, token, rules);
}

void package_jwks_close(struct package_jwks *cache)
{
    if (cache->task)
        duda_task_cancel(cache->task->d);
    duda_jwks_free(cache->keys);
    cache->keys = NULL;
}
