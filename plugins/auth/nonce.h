/* SPDX-License-Identifier: Apache-2.0 */
/* Nonces of Digest: made of the time and a MAC, so that any worker knows its own again without having stored
 * it, and a table of those that somebody used with the right password, with the counts he used. */
#ifndef AUTH_NONCE_H
#define AUTH_NONCE_H

#include "shared.h"

#include <monkey/buf.h>

enum { AUTH_NONCE_LEN = 64, AUTH_NONCE_SPAN_MAX_S = 24 * 60 * 60 };

struct auth_nonce {
    uint64_t time, id;
};

/* A fresh one for the realm, in hexadecimal. */
void auth_nonce_make(const struct auth_shared *s, mk_str realm, int64_t now, char out[AUTH_NONCE_LEN]);
/* False: it is none of ours, or not for this realm. */
bool auth_nonce_parse(const struct auth_shared *s, mk_str realm, mk_str text, struct auth_nonce *out);
/* May be used with this count, once: false if it is too old, or was used with that count already. Only for
 * credentials that are right otherwise, so that nobody else can fill the table. */
bool auth_nonce_use(struct auth_shared *s, const struct auth_nonce *nonce, uint32_t count, int64_t now,
                    uint32_t span_s);

#endif
