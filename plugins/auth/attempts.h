/* SPDX-License-Identifier: Apache-2.0 */
/* Counts wrong passwords per client address. */
#ifndef AUTH_ATTEMPTS_H
#define AUTH_ATTEMPTS_H

#include "shared_state.h"

#include <monkey/addr.h>

enum { AUTH_ATTEMPTS_MAX = 1000, AUTH_SPAN_MAX_S = 24 * 60 * 60 };

/* A counter belongs to a client and a rule: locations with the same rule share a count. */
struct auth_attempt_key {
    uint64_t hash;
    uint32_t limit, span_s; /* a limit of 0: no limit */
};

/* An IPv6 address counts as its whole /64 network, since a client can use any address in it. */
struct auth_attempt_key auth_attempts_key(const struct auth_shared *s, const struct mk_addr *peer,
                                          uint32_t limit, uint32_t span_s);
/* Returns the seconds until the client may try again; 0: now. */
uint32_t auth_attempts_blocked_s(struct auth_shared *s, const struct auth_attempt_key *c, int64_t now);
/* Like auth_attempts_blocked_s(), but also counts one attempt. Call it before the password is checked, so
 * that parallel attempts cannot exceed the limit. */
uint32_t auth_attempts_charge(struct auth_shared *s, const struct auth_attempt_key *c, int64_t now);
/* Takes back an attempt that auth_attempts_charge() has counted, because its password was not wrong. */
void auth_attempts_refund(struct auth_shared *s, const struct auth_attempt_key *c, int64_t now);

#endif
