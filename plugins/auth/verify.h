/* SPDX-License-Identifier: Apache-2.0 */
/* Hashed passwords as stored in files: their schemes, and the check of a password. */
#ifndef AUTH_VERIFY_H
#define AUTH_VERIFY_H

#include <monkey/str.h>

struct crypt_data;

enum { AUTH_HASH_TEXT_MAX = 383 };

struct auth_hash_scheme {
    const char *name, *prefix;
    size_t tail;     /* characters after the last '$' */
    bool can_make;   /* `monkey passwd` can create such hashes */
    size_t password; /* maximum length of a password in bytes; the rest is ignored */
    unsigned cost;   /* the default; 0: libcrypt's default */
};

/* The crypt(3) schemes that are secure enough. The last element has no name. */
extern const struct auth_hash_scheme auth_hash_schemes[];
const struct auth_hash_scheme *auth_hash_scheme_find(mk_str name);

/* Returns an error text if the hash is unusable, else NULL. */
const char *auth_hash_error(mk_str hash);
/* Returns whether the hash is {SHA1}: fast enough for the loop (and for an attacker with the file). */
bool auth_hash_is_fast(mk_str hash);
bool auth_verify_fast(mk_str hash, mk_str password);
/* Checks a password against a slow hash, which may take a second. Both strings are NUL-terminated. `data` is
 * scratch space and contains secrets afterwards. */
bool auth_verify(const char *hash, const char *password, struct crypt_data *data);

#endif
