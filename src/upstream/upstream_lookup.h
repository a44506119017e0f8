/* SPDX-License-Identifier: Apache-2.0 */
/* Finds or creates the upstream that a route names. */
#ifndef MK_UPSTREAM_UPSTREAM_LOOKUP_H
#define MK_UPSTREAM_UPSTREAM_LOOKUP_H

#include "upstream/server.h"

/* See mk_upstream_find(). */
struct mk_upstream *mk_upstream_lookup_for_route(struct mk_upstreams *all, const struct mk_conf_ctx *ctx,
                                                 mk_str name, const struct mk_upstream_defaults *defaults);
/* See mk_upstream_open(). */
struct mk_upstream *mk_upstream_lookup_for_key(struct mk_upstreams *all, struct mk_config *config,
                                               const void *section, const char *key, mk_str name,
                                               const struct mk_upstream_defaults *defaults);
/* Opens a dynamic upstream for a key of another plugin's section. */
struct mk_upstream *mk_upstream_lookup_open_dynamic(struct mk_upstreams *all, struct mk_config *config,
                                                    const void *section, const char *key, mk_str name,
                                                    const struct mk_upstream_dynamic_options *options);

#endif
