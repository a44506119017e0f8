/* SPDX-License-Identifier: Apache-2.0 */
/* Digest nonces. A nonce is a time and a MAC, so any worker can verify it without having stored it. A table
 * contains the nonces that were used with a correct password, with their counts. */
#ifndef AUTH_NONCE_H
#define AUTH_NONCE_H

#include "shared_state.h"

#include <monkey/buf.h>

enum { AUTH_NONCE_LEN = 64, AUTH_NONCE_SPAN_MAX_S = 24 * 60 * 60 };

struct auth_nonce {
    uint64_t time, id;
};

/* Creates a nonce for the realm, in hexadecimal. */
void auth_nonce_generate(const struct auth_shared *s, mk_str realm, int64_t now, char out[AUTH_NONCE_LEN]);
/* Returns false if the server did not create the nonce, or created it for another realm. */
bool auth_nonce_parse(const struct auth_shared *s, mk_str realm, mk_str text, struct auth_nonce *out);
/* Marks the nonce's count as used. Returns false if the nonce is too old or the count was used before. Call
 * it only if the credentials are otherwise valid, so that other clients cannot fill the table. */
bool auth_nonce_consume(struct auth_shared *s, const struct auth_nonce *nonce, uint32_t count, int64_t now,
                        uint32_t span_s);

#endif
