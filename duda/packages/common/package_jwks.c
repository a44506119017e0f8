/* SPDX-License-Identifier: Apache-2.0 */
#include "package_jwks.h"

#include <duda/lock.h>
#include <duda/memory.h>
#include <duda/request.h>
#include <duda/wait.h>
#include <errno.h>

enum {
    KEPT_S = 3600,      /* after this time, the keys are fetched again */
    KEPT_MAX_S = 86400, /* after this time, old keys are no longer used, even if the server is unavailable */
    REFETCH_MIN_S = 60, /* clients can send any number of tokens with unknown keys */
    RETRY_MIN_S = 5,    /* an unavailable server must not delay every request */
    LOCK_MS = 15000
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

/* ---- Keys ---- */

static int fetch_keys(struct duda_ctx *d, struct package_jwks *cache, mk_str url,
                      struct package_jwks_server server)
{
    struct duda_http_request request = {.method = MK_STR_NULL};
    struct duda_http_response response;
    cache->failed_at = now_s(d); /* reset if the request succeeds */
    int e = package_jwks_fetch(d, url, server, &request, &response);
    if (!e && response.status != 200)
        e = -EHOSTUNREACH;
    struct duda_jwks *keys = e ? NULL : duda_jwks_new(response.body);
    if (!e && !keys)
        e = duda_reason(d, errno == ENOMEM ? -ENOMEM : -EHOSTUNREACH, "%.*s is not a JWK set",
                        MK_STR_ARG(url));
    if (e)
        return e;
    duda_jwks_free(cache->keys);
    cache->keys = keys;
    cache->fetched_at = now_s(d);
    cache->failed_at = 0;
    return 0;
}

static bool are_fresh(struct duda_ctx *d, const struct package_jwks *cache)
{
    return cache->keys && now_s(d) - cache->fetched_at < KEPT_S;
}

static bool has_just_failed(struct duda_ctx *d, const struct package_jwks *cache)
{
    return cache->failed_at && now_s(d) - cache->failed_at < RETRY_MIN_S;
}

/* Fetches the keys. If that fails, keeps the old ones for up to a day. */
static int fetch_or_keep(struct duda_ctx *d, struct package_jwks *cache, mk_str url,
                         struct package_jwks_server server)
{
    if (are_fresh(d, cache)) /* another handler has fetched them meanwhile */
        return 0;
    int e = has_just_failed(d, cache)
                ? duda_reason(d, -EHOSTUNREACH, "the keys at %.*s could not be fetched", MK_STR_ARG(url))
                : fetch_keys(d, cache, url, server);
    if (!e || !cache->keys || now_s(d) - cache->fetched_at >= KEPT_MAX_S || duda_cancelled(d))
        return e;
    duda_log(d, MK_LOG_WARN, "keys at %.*s cannot be fetched again: continuing with the old ones",
             MK_STR_ARG(url));
    return 0;
}

static mk_str lock_name(mk_str url)
{
    return mk_str_first(url, DUDA_LOCK_NAME_MAX);
}

/* Fetches the keys unless the cache has current ones. While one handler fetches new keys, the others continue
 * with the old ones, if there are any. */
int package_jwks_ensure(struct duda_ctx *d, struct package_jwks *cache, mk_str url,
                        struct package_jwks_server server)
{
    if (are_fresh(d, cache))
        return 0;
    int e = duda_lock(d, lock_name(url), cache->keys ? 0 : LOCK_MS);
    if (e == -EBUSY && cache->keys && now_s(d) - cache->fetched_at < KEPT_MAX_S)
        return 0;
    if (e)
        return e;
    e = fetch_or_keep(d, cache, url, server);
    duda_unlock(d, lock_name(url));
    return e;
}

/* Fetches the keys again, because a token has an unknown key. Waits for another handler that does the
 * same. */
static int fetch_new_keys(struct duda_ctx *d, struct package_jwks *cache, mk_str url,
                          struct package_jwks_server server)
{
    int e = duda_lock(d, lock_name(url), LOCK_MS);
    if (e)
        return e;
    bool is_too_soon = cache->refetched_at && now_s(d) - cache->refetched_at < REFETCH_MIN_S;
    if (!is_too_soon) {
        cache->refetched_at = now_s(d);
        e = fetch_keys(d, cache, url, server);
    }
    duda_unlock(d, lock_name(url));
    return e;
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
    duda_jwks_free(cache->keys);
    cache->keys = NULL;
}
