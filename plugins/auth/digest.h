/* SPDX-License-Identifier: Apache-2.0 */
/* Digest (RFC 7616) for a place: challenges, and whether an answer to one is right. */
#ifndef AUTH_DIGEST_H
#define AUTH_DIGEST_H

#include "places.h"

#include <monkey/response.h>

enum auth_digest_answer {
    AUTH_DIGEST_RIGHT,
    AUTH_DIGEST_WRONG,
    AUTH_DIGEST_STALE,   /* right, but for a nonce that is no longer good: the client shall take a new one */
    AUTH_DIGEST_FOREIGN, /* for another realm or algorithm */
    AUTH_DIGEST_BROKEN   /* malformed, or for another target */
};

/* `text` is what stands behind the scheme; *user is who he says he is. Changes nothing but the table of
 * nonces, and that only when the answer is RIGHT. */
enum auth_digest_answer auth_digest_check(struct auth_shared *s, const struct auth_place *place,
                                          struct mk_request *request, mk_str text, int64_t now, mk_str *user);
/* A field WWW-Authenticate for each algorithm that is offered. 0 or -ENOMEM. */
int auth_digest_challenge(const struct auth_shared *s, const struct auth_place *place,
                          struct mk_response *response, int64_t now, bool stale);

#endif
