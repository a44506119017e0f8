/* SPDX-License-Identifier: Apache-2.0 */
/* The [FORWARD_AUTH] sections of a host: which paths need the permission of which service. */
#ifndef FORWARD_AUTH_LOCATIONS_H
#define FORWARD_AUTH_LOCATIONS_H

#include <monkey/plugin.h>
#include <monkey/upstream.h>

/* Parts of a request that a cached answer depends on, besides Cookie, Authorization, host, scheme and client
 * address. */
enum forward_auth_cache_per { FORWARD_AUTH_PER_URL, FORWARD_AUTH_PER_HOST };

/* A section and its derived data. */
struct forward_auth_location {
    mk_str location;
    mk_str url;                         /* as written; "off": no permission is needed */
    struct mk_conf_words copy_headers;  /* headers of the answer that the request gets */
    mk_str user_header;                 /* header of the answer with the name of the user; absent: none */
    mk_str login_url;                   /* absent: none */
    struct mk_conf_words cache_headers; /* more headers that a cached answer depends on */
    uint64_t cache_ms, timeout_ms;
    unsigned cache_per; /* enum forward_auth_cache_per */

    struct mk_upstream *upstream; /* NULL: the section exempts its paths */
    mk_str authority, target;     /* of the URL */
    unsigned id;                  /* position among all sections, for cache keys */
};

/* Per-host data. */
struct forward_auth_vhost {
    const struct forward_auth_location **places; /* longest Location first */
    size_t n;
    mk_str *identity; /* headers that clients may not send: all CopyHeaders and UserHeader of the host */
    size_t n_identity;
};

extern const struct mk_conf_table forward_auth_table;

int forward_auth_locations_bind_vhost(struct mk_config *c, struct mk_vhost *host, void *data,
                                      void **host_data);

/* Finds the location of a request's path, or of a variant that a program may use instead; *place is NULL if
 * there is none. Returns 0, or the status to reject the request with: 403 if the variants belong to different
 * services, or a status from mk_request_variants(). */
unsigned forward_auth_locations_find(const struct forward_auth_vhost *site, struct mk_request *request,
                                     const struct forward_auth_location **place);

#endif
