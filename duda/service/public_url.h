/* SPDX-License-Identifier: Apache-2.0 */
/* The key `PublicUrl` of [DUDA]: the URLs at which clients reach services. */
#ifndef DUDA_SERVICE_PUBLIC_URL_H
#define DUDA_SERVICE_PUBLIC_URL_H

#include <monkey/config.h>

struct duda_public_url {
    mk_str url; /* without a slash at the end */
    mk_str *services;
    size_t n_services; /* 0: all services that no other value names */
};

struct duda_public_urls {
    struct duda_public_url *at;
    size_t n;
};

/* Parses a value of the configuration key. */
bool duda_public_urls_parse(const struct mk_conf_ctx *conf_ctx, mk_str value, void *urls);
bool duda_public_urls_format(const void *urls, size_t i, struct mk_buf *out);
/* Returns the URL of the service; absent if there is none. */
mk_str duda_public_urls_find(const struct duda_public_urls *urls, mk_str service);
/* Called when all services are known: warns about unknown names. */
void duda_public_urls_check(struct mk_config *config, const void *section,
                            const struct duda_public_urls *urls, const mk_str *services, size_t n);

#endif
