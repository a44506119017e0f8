/* SPDX-License-Identifier: Apache-2.0 */
/* Failover: when a server goes down, all workers move its unanswered requests to another server where
 * possible. */
#ifndef MK_UPSTREAM_FAILOVER_H
#define MK_UPSTREAM_FAILOVER_H

#include "upstream/pool_type.h"

/* Notifies all workers, including this one, that the server is down. They handle the message later. */
void mk_failover_broadcast(struct mk_backend *o);
/* Handles a worker's report that a server is down. */
void mk_failover_on_message(struct mk_pool *p, mk_str message);

/* Encodes the message that tells workers that a server is down. */
static inline uint32_t mk_failover_encode(const struct mk_upstream_server *s)
{
    return s->upstream->index | (s->index + 1u) << 16;
}
static inline uint32_t mk_failover_decode_upstream(uint32_t message)
{
    return message & 0xffff;
}
/* Decodes that message. Returns the index of the server; -1: the message names no server. */
static inline int mk_failover_decode_server(uint32_t message)
{
    return (int)(message >> 16) - 1;
}

#endif
