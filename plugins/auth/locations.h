/* SPDX-License-Identifier: Apache-2.0 */
/* The [AUTH] sections of a host: which paths need a password, by which scheme, and which users may enter. */
#ifndef AUTH_LOCATIONS_H
#define AUTH_LOCATIONS_H

#include "shared_state.h"
#include "users.h"

#include <monkey/request.h>

enum auth_type { AUTH_TYPE_BASIC, AUTH_TYPE_DIGEST, AUTH_TYPE_NONE };

struct auth_names {
    mk_str *v;
    size_t n, cap;
};

/* Networks whose clients need no password. */
struct auth_networks {
    struct mk_network *v;
    mk_str *words; /* networks as written in the configuration */
    size_t n, cap;
    const struct mk_network_set *set; /* NULL: not built yet */
};

/* Requirements from `Require`: meeting one of them is enough. */
struct auth_required {
    struct auth_names names; /* allowed users; empty: all users of the file */
    struct auth_networks networks;
};

/* A section and its derived data. */
struct auth_location {
    mk_str location, title, file;
    unsigned type; /* enum auth_type */
    struct auth_required required;
    uint32_t attempts;
    uint64_t attempt_ms, cache_ms, nonce_ms;
    bool md5;

    const struct auth_users *users;
    mk_str challenge; /* Basic: the whole value of WWW-Authenticate */
    bool offers[2];   /* Digest: indexed by enum auth_hash */
};

/* Per-configuration data. */
struct auth_config {
    struct auth_shared *shared;
    struct auth_users *files; /* the user files, each read once */
};
/* Per-host data. */
struct auth_vhost {
    struct auth_config *setup;
    const struct auth_location **places; /* longest Location first */
    size_t n;
};

extern const struct mk_conf_table auth_table;

int auth_locations_load(struct mk_config *c, void **data);
int auth_locations_bind_vhost(struct mk_config *c, struct mk_vhost *host, void *data, void **host_data);

/* Finds the location of a request's path, or of a variant that a program may use instead; *place is NULL if
 * there is none. Returns 0, or the status to reject the request with: 403 if the variants belong to different
 * locations with passwords, or a status from mk_request_variants(). */
unsigned auth_locations_find(const struct auth_vhost *site, const struct mk_request *request,
                             const struct auth_location **place);
/* Returns whether the address alone grants access. */
bool auth_location_allows_addr(const struct auth_location *place, const struct mk_addr *peer);
bool auth_location_allows_user(const struct auth_location *place, mk_str user);

#endif
