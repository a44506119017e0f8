/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a server that signs tokens: fetched from its URL, cached, and fetched again when it has new
 * ones. */
#ifndef DUDA_COMMON_PACKAGE_JWKS_H
#define DUDA_COMMON_PACKAGE_JWKS_H

#include <duda/crypto.h>
#include <duda/http.h>

/* How to reach a server that signs tokens. */
struct package_jwks_server {
    mk_str client; /* Name of the [HTTP_CLIENT] section; empty: the host (and port) of the URL */
    bool secure;   /* URLs must begin with https://; otherwise with http:// */
};

struct package_jwks_task;

/* The cache of one worker; initially zero. */
struct package_jwks {
    struct duda_jwks *keys; /* NULL: not fetched yet */
    int64_t fetched_at, failed_at, refetched_at;
    struct package_jwks_task *task; /* fetches the keys; NULL: none does */
    char problem[300];              /* the reason of the last failure */
};

/* Call this in the check of a section: reports an error unless there is an [HTTP_CLIENT] for requests to `url`, the
 * value of `key`. `client` is the value of `HttpClient`, which may be empty. */
void package_jwks_require_client(struct mk_config *config, const void *section, const char *key, mk_str url,
                                 mk_str client);
/* Sends a request to an absolute URL. Returns 0, or an error with a reason. A status other than 200 is no error,
 * but records a reason. */
int package_jwks_fetch(struct duda_ctx *d, mk_str url, struct package_jwks_server server,
                       struct duda_http_request *request, struct duda_http_response *response);

/* Verifies a token like duda_jwt_verify_jwks(), with the keys at `url`, and returns the results of that
 * function. If there are no keys, because the server does not respond, returns an error with a reason. Keys
 * are fetched again after an hour, and, at most once a minute, if a token has an unknown key. If the server
 * does not respond, the old keys remain valid for a day. */
int package_jwks_verify(struct duda_ctx *d, struct package_jwks *cache, mk_str url,
                        struct package_jwks_server server, struct mk_buf *claims, mk_str token,
                        const struct duda_jwt_rules *rules);
/* Fetches the keys unless the cache has current ones. Returns 0, or an error with a reason. */
int package_jwks_ensure(struct duda_ctx *d, struct package_jwks *cache, mk_str url,
                        struct package_jwks_server server);
void package_jwks_close(struct package_jwks *cache);

#endif
