/* SPDX-License-Identifier: Apache-2.0 */
/* Counts wrong passwords per client address. */
#ifndef AUTH_ATTEMPTS_H
#define AUTH_ATTEMPTS_H

#include "shared_state.h"

#include <monkey/addr.h>

enum { AUTH_ATTEMPTS_MAX = 1000, AUTH_SPAN_MAX_S = 24 * 60 * 60 };

/* Client and rule of a counter: locations with the same rule share a count. */
struct auth_attempt_key {
    uint64_t hash;
    uint32_t limit, span_s; /* a limit of 0: no limit */
};

/* An IPv6 address counts with its whole /64, since a client there can use any of its addresses. */
struct auth_attempt_key auth_attempts_key(const struct auth_shared *s, const struct mk_addr *peer,
                                          uint32_t limit, uint32_t span_s);
/* 0: the client may try; otherwise the seconds until it may. */
uint32_t auth_attempts_blocked_s(struct auth_shared *s, const struct auth_attempt_key *c, int64_t now);
/* The same, and counts one attempt in advance, before the password is checked: parallel attempts gain
 * nothing. */
uint32_t auth_attempts_charge(struct auth_shared *s, const struct auth_attempt_key *c, int64_t now);
/* Takes back the count of an attempt whose password was not wrong. */
void auth_attempts_refund(struct auth_shared *s, const struct auth_attempt_key *c, int64_t now);

#endif
