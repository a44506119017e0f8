/* SPDX-License-Identifier: Apache-2.0 */
/* A setting with networks: the trusted proxies. */
#ifndef SECURITY_NETWORKS_H
#define SECURITY_NETWORKS_H

#include <monkey/plugin.h>

struct security_networks {
    struct mk_network *at;
    mk_str *words; /* networks as written in the configuration */
    size_t n;
    const struct mk_network_set *set; /* NULL: not built yet */
    bool is_set;                      /* the key is configured; if it has no networks, its value is `off` */
};

/* Parses a key whose value is `off` or a list of networks into a struct security_networks. */
bool security_networks_parse(const struct mk_conf_ctx *ctx, mk_str value, void *field);
bool security_networks_show(const void *field, size_t i, struct mk_buf *out);

#endif
