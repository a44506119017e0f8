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
    mk_str *words; /* as written */
    size_t n, cap;
    const struct mk_network_set *set; /* of them; NULL: not made yet */
};

/* `Require`: any one of these suffices. */
struct auth_required {
    struct auth_names names; /* none: all of the file */
    struct auth_networks networks;
};

/* One section, and what became of it. */
struct auth_location {
    mk_str location, title, file;
    unsigned type; /* enum auth_type */
    struct auth_required required;
    uint32_t attempts;
    uint64_t attempt_ms, cache_ms, nonce_ms;
    bool md5;

    const struct auth_users *users;
    mk_str challenge; /* Basic: the whole value of WWW-Authenticate */
    bool offers[2];   /* Digest: by enum auth_hash */
};

/* What is kept for a configuration, */
struct auth_config {
    struct auth_shared *shared;
    struct auth_users *files; /* each is read once */
};
/* and for a host. */
struct auth_vhost {
    struct auth_config *setup;
    const struct auth_location **places; /* the longest Location first */
    size_t n;
};

extern const struct mk_conf_table auth_table;

int auth_locations_load(struct mk_config *c, void **data);
int auth_locations_bind_vhost(struct mk_config *c, struct mk_vhost *host, void *data, void **host_data);

/* The place that a request's path belongs to, or a variant of it that a program could answer for; *place is
 * NULL if there is none. 0, or the status to refuse the request with: 403 when the variants belong to
 * different places that ask for a password, or as mk_request_variants(). */
unsigned auth_locations_find(const struct auth_vhost *site, const struct mk_request *request,
                             const struct auth_location **place);
/* Does the address alone let the client in? */
bool auth_location_allows_addr(const struct auth_location *place, const struct mk_addr *peer);
bool auth_location_allows_user(const struct auth_location *place, mk_str user);

#endif
