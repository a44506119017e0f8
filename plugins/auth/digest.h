/* SPDX-License-Identifier: Apache-2.0 */
/* Digest authentication (RFC 7616) of a location: challenges, and verification of responses. */
#ifndef AUTH_DIGEST_H
#define AUTH_DIGEST_H

#include "locations.h"

#include <monkey/response.h>

enum auth_digest_result {
    AUTH_DIGEST_VALID,
    AUTH_DIGEST_INVALID,
    AUTH_DIGEST_STALE,    /* valid, but the nonce has expired: the client should use a new one */
    AUTH_DIGEST_NOT_OURS, /* malformed, or for another realm or algorithm: the client may try again */
    AUTH_DIGEST_WRONG_URI /* valid for another target: 400 (RFC 7616, section 3.4.6) */
};

/* `text` is the header's value after the scheme; *user becomes the claimed name. Changes only the nonce
 * table, and only if the result is AUTH_DIGEST_VALID. */
enum auth_digest_result auth_digest_check(struct auth_shared *s, const struct auth_location *place,
                                          struct mk_request *request, mk_str text, int64_t now, mk_str *user);
/* Adds a WWW-Authenticate header for each offered algorithm. Returns 0 or -ENOMEM. */
int auth_digest_challenge(const struct auth_shared *s, const struct auth_location *place,
                          struct mk_response *response, int64_t now, bool stale);

#endif
