/* SPDX-License-Identifier: Apache-2.0 */
/* A user file with hashed passwords, as read when the configuration was loaded. */
#ifndef AUTH_USERS_H
#define AUTH_USERS_H

#include "hash.h"

#include <monkey/config.h>

/* An entry name:hash. */
struct auth_user {
    mk_str name, hash;
    unsigned line;
};

/* An entry name:realm:hash; the hash is that of "name:realm:password" in hexadecimal. */
struct auth_digest_user {
    mk_str name, realm;
    uint8_t ha1[AUTH_HASH_MAX];
    enum auth_hash kind;
    unsigned line;
};

struct auth_users {
    struct auth_users *next; /* in the configuration's list */
    mk_str path;
    struct auth_user *basic; /* both arrays are sorted by name */
    struct auth_digest_user *digest;
    size_t n_basic, n_digest;
};

/* Reads the file. Reports errors at `UserFile` of the section. Returns NULL if out of memory, which is also
 * reported. */
struct auth_users *auth_users_load(struct mk_config *c, const void *section, mk_str path);

const struct auth_user *auth_users_find(const struct auth_users *u, mk_str name);
/* Returns a decoy for an unknown user, always the same one for a name, so that the time of a check does not
 * reveal which users exist. Returns NULL if the file has no entry for Basic. */
const struct auth_user *auth_users_find_decoy(const struct auth_users *u, const uint8_t key[AUTH_KEY_LEN],
                                              mk_str name);
const struct auth_digest_user *auth_users_find_digest(const struct auth_users *u, mk_str name, mk_str realm,
                                                      enum auth_hash kind);
bool auth_users_has_realm(const struct auth_users *u, mk_str realm, enum auth_hash kind);

#endif
