/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the open connections of each client address. IPv6 clients are counted by /64 network, because a
 * client controls all addresses of its network. */
#ifndef MK_CONNECTION_CLIENT_LIMITS_H
#define MK_CONNECTION_CLIENT_LIMITS_H

#include "base/err.h"
#include "base/hash.h"
#include "os/sockaddr.h"

struct mk_client_limits_slot {
    uint8_t ip[16];
    uint32_t n; /* 0: free slot */
};

struct mk_client_limits {
    struct mk_hash_key hash_key;
    struct mk_client_limits_slot *slots;
    size_t n, cap; /* a power of two */
    unsigned max;  /* maximum per address; 0: no limit, nothing is counted */
};

void mk_client_limits_init(struct mk_client_limits *p, unsigned max);
void mk_client_limits_fini(struct mk_client_limits *p);
/* Counts a connection of the address `peer`. -EDQUOT: the address has reached its limit; -ENOMEM: out of
 * memory. Peers on unix sockets are not counted. */
mk_err mk_client_limits_acquire(struct mk_client_limits *p, const struct mk_addr *peer) MK_MUST_USE;
/* Moves a connection to its real client address once that is known. On an error, it stays counted for the old
 * address. */
mk_err mk_client_limits_transfer(struct mk_client_limits *p, const struct mk_addr *from,
                                 const struct mk_addr *to) MK_MUST_USE;
void mk_client_limits_release(struct mk_client_limits *p, const struct mk_addr *peer);

#endif
