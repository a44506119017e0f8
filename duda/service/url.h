/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DUDA_SERVICE_URL_H
#define DUDA_SERVICE_URL_H

#include "service/duda_ctx.h"
#include "service/route_table.h"
#include "service/service_entry.h"

/* Warns about the calls of duda_url_for() in the object of the service whose names can never be found. */
void duda_url_check_names(struct mk_config *config, const struct duda_service *service,
                          const struct duda_route_table *t);

/* Returns the path at which the service is mounted: the part of the request's path before d->path. */
static inline mk_str duda_url_mount_prefix(struct duda_ctx *d)
{
    mk_str path;
    if (!d->request)
        return MK_STR("");
    for (size_t i = 0; (path = mk_request_path_at(d->request, i)).p; i++)
        if (d->path.p >= path.p && d->path.p <= path.p + path.len)
            return mk_str_first(path, (size_t)(d->path.p - path.p));
    return mk_request_path(d->request); /* the path is the prefix itself */
}

/* Warns about the tags `url_for` in the templates whose routes or parameters are wrong. They are no errors:
 * several services may have their templates in one folder. */
void duda_url_check_templates(struct mk_config *config, const struct duda_templates *templates,
                              const struct duda_route_table *t);
/* Returns whether duda_url_append_base() has a base to append. */
static inline bool duda_url_has_base(const struct duda_ctx *d, bool is_absolute)
{
    return (d->request && !is_absolute) || (d->owner && d->owner->entry->public_url.p);
}
/* Appends the URL of the service: the path at which it is mounted; if `is_absolute` or without a request,
 * PublicUrl and that path. Returns 0, or -ENOENT: PublicUrl is not set. */
int duda_url_append_base(struct duda_ctx *d, bool is_absolute, struct mk_buf *out);
/* Appends the URL of a route to `out`, like duda_url_for(). Returns 0, or -EINVAL after it has logged why. */
int duda_url_append(struct duda_ctx *d, bool is_absolute, mk_str name, const struct duda_entry *params,
                    size_t n, struct mk_buf *out);
/* Returns whether `pair`, the part "NAME=VALUE" of a query, has this name. */
bool duda_query_pair_has_name(struct duda_ctx *d, mk_str pair, mk_str name);

#endif
