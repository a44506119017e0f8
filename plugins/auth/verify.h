/* SPDX-License-Identifier: Apache-2.0 */
/* Hashed passwords as they stand in files: which there are, and whether a password is the right one. */
#ifndef AUTH_VERIFY_H
#define AUTH_VERIFY_H

#include <monkey/str.h>

struct crypt_data;

enum { AUTH_HASH_TEXT_MAX = 383 };

struct auth_kind {
    const char *name, *prefix;
    size_t tail;     /* characters behind the last '$' */
    bool can_make;   /* `monkey passwd` may write it */
    size_t password; /* what is behind so many bytes of a password makes no difference */
    unsigned cost;   /* when nobody says another one; 0: as libcrypt likes it */
};

/* Those of crypt(3) that are good enough; ended by one without name. */
extern const struct auth_kind auth_kinds[];
const struct auth_kind *auth_kind_find(mk_str name);

/* What is wrong with the hash, for people; NULL if it can be used. */
const char *auth_hash_fault(mk_str hash);
/* {SHA1}, which is quick enough to be computed in the loop (and for whoever steals the file). */
bool auth_hash_is_quick(mk_str hash);
bool auth_verify_quick(mk_str hash, mk_str password);
/* The others: may take a second. Both end with a NUL. `data` is room, and holds secrets afterwards. */
bool auth_verify(const char *hash, const char *password, struct crypt_data *data);

#endif
