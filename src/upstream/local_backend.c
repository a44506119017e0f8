/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of this server in other processes: monkey/upstream.h. */
#include "upstream/proxy.h"

enum { KEEP = 128 };

struct mk_local_backend {
    struct mk_proxy_route route;
};

struct mk_local_backend *mk_local_backend_open(struct mk_config *config, const void *section, const char *key,
                                               mk_str socket, mk_str secret, uint32_t wait_ms)
{
    static const struct mk_upstream_defaults defaults = {.keep = KEEP};
    struct mk_local_backend *part = mk_config_alloc(config, sizeof *part);
    struct mk_upstream *upstream = part ? mk_upstream_open(config, section, key, socket, &defaults) : NULL;
    if (!upstream)
        return NULL;
    part->route = (struct mk_proxy_route){.upstream = upstream,
                                          .authority = MK_STR("localhost"),
                                          .forwarded = MK_PROXY_FORWARDED_OFF,
                                          .is_part = true,
                                          .secret = mk_config_copy(config, secret),
                                          .limits = {.response_ms = wait_ms}};
    return part->route.secret.len == secret.len ? part : NULL;
}

enum mk_verdict mk_local_backend_handle(struct mk_request *request, struct mk_response *response,
                                        struct mk_local_backend *part)
{
    return mk_handler_proxy_handle(request, response, &part->route);
}
