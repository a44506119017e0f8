/* SPDX-License-Identifier: Apache-2.0 */
/* Counts wrong passwords by address. */
#ifndef AUTH_ATTEMPTS_H
#define AUTH_ATTEMPTS_H

#include "shared.h"

#include <monkey/address.h>

enum { AUTH_ATTEMPTS_MAX = 1000, AUTH_SPAN_MAX_S = 24 * 60 * 60 };

/* Who is counted, and by which rule: places with the same rule count together. */
struct auth_counted {
    uint64_t hash;
    uint32_t limit, span_s; /* a limit of 0: no limit */
};

/* An IPv6 address is counted with all of its /64: whoever has one has them all. */
struct auth_counted auth_attempts_of(const struct auth_shared *s, const struct mk_peer *peer, uint32_t limit,
                                     uint32_t span_s);
/* 0: he may try; otherwise the seconds until he may. */
uint32_t auth_attempts_blocked(struct auth_shared *s, const struct auth_counted *c, int64_t now);
/* The same, and one attempt is counted, before it is known whether it is a wrong one: so many at once do not
 * help. */
uint32_t auth_attempts_take(struct auth_shared *s, const struct auth_counted *c, int64_t now);
/* It was none. */
void auth_attempts_give_back(struct auth_shared *s, const struct auth_counted *c, int64_t now);

#endif
