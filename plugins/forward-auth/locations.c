/* SPDX-License-Identifier: Apache-2.0 */
#include "locations.h"

#include <errno.h>
#include <stdlib.h>

enum { KEEPALIVE = 32 };

/* ---- The service ---- */

static bool prepare_service(struct mk_config *c, struct forward_auth_location *p)
{
    struct mk_upstream_url url;
    if (mk_str_eq(p->url, MK_STR("off")) || p->upstream) /* or already prepared for another host */
        return true;
    int e = mk_upstream_parse_url(p->url, &url);
    if (e) {
        mk_config_error(c, p, "URL", "%s",
                        e == -EINVAL ? "the server must not be empty, and the path must begin with `/`"
                                     : "expected `http://SERVER/PATH`, `https://SERVER/PATH` or `off`");
        return true;
    }
    struct mk_upstream_defaults defaults = {
        .port = url.tls ? 443 : 80, .tls = url.tls, .keepalive = KEEPALIVE};
    p->authority = url.authority;
    p->target = url.target;
    p->upstream = mk_upstream_open(c, p, "URL", url.server, &defaults);
    return true;
}

/* ---- Hosts ---- */

static int compare_longest_first(const void *a, const void *b)
{
    const struct forward_auth_location *x = *(const struct forward_auth_location *const *)a,
                                       *y = *(const struct forward_auth_location *const *)b;
    if (x->location.len != y->location.len)
        return x->location.len > y->location.len ? -1 : 1;
    return mk_str_cmp(x->location, y->location);
}

static void report_duplicates(struct mk_config *c, const struct forward_auth_vhost *site)
{
    for (size_t i = 1; i < site->n; i++)
        if (mk_str_eq(site->places[i - 1]->location, site->places[i]->location))
            mk_config_error(c, site->places[i], "Location", "duplicate section [FORWARD_AUTH] for %.*s",
                            MK_STR_ARG(site->places[i]->location));
}

static bool collect_identity_headers(struct mk_config *c, struct forward_auth_vhost *site)
{
    size_t max = 0;
    for (size_t i = 0; i < site->n; i++)
        max += site->places[i]->copy_headers.n + 1;
    site->identity = mk_config_alloc(c, max * sizeof *site->identity);
    for (size_t i = 0; site->identity && i < site->n; i++) {
        const struct forward_auth_location *p = site->places[i];
        for (size_t k = 0; k < p->copy_headers.n; k++)
            site->identity[site->n_identity++] = p->copy_headers.v[k];
        if (p->user_header.p)
            site->identity[site->n_identity++] = p->user_header;
    }
    return site->identity;
}

int forward_auth_locations_bind_vhost(struct mk_config *c, struct mk_vhost *host, void *data,
                                      void **host_data)
{
    struct forward_auth_vhost *site = mk_config_alloc(c, sizeof *site);
    struct forward_auth_location *p;
    unsigned *next_id = data;
    size_t n = 0;
    (void)host;
    for (p = NULL; (p = mk_config_section(c, &forward_auth_table, p));)
        n++;
    if (n == 0)
        return 0;
    if (!site || !(site->places = mk_config_alloc(c, n * sizeof *site->places)))
        return -ENOMEM;
    for (p = NULL; (p = mk_config_section(c, &forward_auth_table, p));) {
        if (!p->id)
            p->id = ++*next_id;
        if (!prepare_service(c, p))
            return -ENOMEM;
        site->places[site->n++] = p;
    }
    qsort(site->places, n, sizeof *site->places, compare_longest_first);
    report_duplicates(c, site);
    *host_data = site;
    return collect_identity_headers(c, site) ? 0 : -ENOMEM;
}

/* ---- Requests ---- */

/* "/app/" also covers "/app", because a handler may respond to it with the folder's content. */
static bool location_covers(mk_str location, mk_str path)
{
    if (location.len == path.len + 1 && location.p[path.len] == '/')
        location.len--;
    return mk_str_starts(path, location);
}

static const struct forward_auth_location *find_location(const struct forward_auth_vhost *site, mk_str path)
{
    for (size_t i = 0; i < site->n; i++)
        if (location_covers(site->places[i]->location, path))
            return site->places[i];
    return NULL;
}

static bool needs_permission(const struct forward_auth_location *place)
{
    return place && place->upstream;
}

/* The service decides about the path as the client sent it, and might permit a path that a backend interprets as
 * another one. */
static void mark_ambiguous_path(struct mk_request *request, const struct forward_auth_location *place)
{
    mk_request_explain(request, "auth",
                       "%.*s: the service is asked about the path as the client sent it, but a backend may "
                       "interpret it as another path: gateways respond with 400 (unless the route sets "
                       "paths=raw)",
                       MK_STR_ARG(place->location));
    mk_request_set_ambiguous(request);
}

unsigned forward_auth_locations_find(const struct forward_auth_vhost *site, struct mk_request *request,
                                     const struct forward_auth_location **place)
{
    const mk_str *variants;
    size_t n;
    *place = find_location(site, mk_request_path(request));
    unsigned status = mk_request_variants(request, &variants, &n);
    for (size_t i = 0; i < n; i++) {
        const struct forward_auth_location *other = find_location(site, variants[i]);
        if (other == *place || !needs_permission(other))
            continue;
        if (needs_permission(*place))
            return 403; /* the permission of one service does not imply that of the other */
        *place = other;
    }
    if (needs_permission(*place) && n && mk_request_variant_kind(request, 0) == MK_VARIANT_READING)
        mark_ambiguous_path(request, *place);
    return status;
}
