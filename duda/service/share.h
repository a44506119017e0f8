/* SPDX-License-Identifier: Apache-2.0 */
/* The key `Share` of [DUDA]: services that share their state, and hosts that share one state. */
#ifndef DUDA_SERVICE_SHARE_H
#define DUDA_SERVICE_SHARE_H

#include <monkey/config.h>

struct duda_share {
    mk_str name; /* of the scope */
    mk_str *services, *hosts;
    size_t n_services, n_hosts;
    bool has_all_hosts;
};

struct duda_shares {
    struct duda_share *at;
    size_t n;
};

/* Parses a value of the configuration key. */
bool duda_shares_parse(const struct mk_conf_ctx *conf_ctx, mk_str value, void *shares);
bool duda_shares_format(const void *shares, size_t i, struct mk_buf *out);

/* Returns whether the name consists of letters, digits, `-` and `_`, and is not too long. */
bool duda_scope_is_valid_name(mk_str name);
/* Returns the share of the service; NULL if the service shares nothing. */
const struct duda_share *duda_shares_find(const struct duda_shares *shares, mk_str service);
/* Called when all services are known: reports unknown names, and a scope named like another service. */
void duda_shares_check(struct mk_config *config, const void *section, const struct duda_shares *shares,
                       const mk_str *services, size_t n);
/* Returns the host name under which the state of that host is stored; `share` may be NULL. */
mk_str duda_scope_state_host(const struct duda_share *share, mk_str host);

#endif
