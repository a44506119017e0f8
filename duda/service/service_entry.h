/* SPDX-License-Identifier: Apache-2.0 */
/* A service in one configuration, and its mount points. */
#ifndef DUDA_SERVICE_SERVICE_ENTRY_H
#define DUDA_SERVICE_SERVICE_ENTRY_H

#include "service/duda_ctx.h"
#include "service/route_table.h"

/* A service in one configuration. */
struct service_entry {
    const struct duda_service *service;
    const struct duda_route_table *table;
    const struct duda_templates *templates;
    const struct duda_assets *assets; /* NULL: none */
    struct duda_service_ref has;
    mk_str public_url;   /* PublicUrl of [DUDA], without a slash at the end; absent: none */
    mk_str mount_prefix; /* of the first [ROUTES] that mounts the service */
    bool named;          /* used in at least one [ROUTES] */
    bool is_checked;     /* warn_without_csrf_check() has checked the service */
};

/* The mount point of a service. */
struct mount {
    const struct service_entry *service_entry;
    mk_str prefix; /* "/shop" of "/shop/..."; may be empty */
};

/* The pattern "/shop/..." without its suffix. */
static inline mk_str duda_mount_prefix(mk_str pattern)
{
    while (pattern.len && (pattern.p[pattern.len - 1] == '*' || pattern.p[pattern.len - 1] == '/'))
        pattern.len--;
    return pattern.len && pattern.p[0] == '/' ? pattern : MK_STR("");
}

#endif
