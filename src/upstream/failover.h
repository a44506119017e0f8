/* SPDX-License-Identifier: Apache-2.0 */
/* A server is down: requests that wait for its response are moved to another one, where they may be, in all
 * workers. */
#ifndef MK_UPSTREAM_FAILOVER_H
#define MK_UPSTREAM_FAILOVER_H

#include "upstream/pool_type.h"

/* Tells all workers, this one too: soon. */
void mk_failover_broadcast(struct mk_backend *o);
/* Here. */
void mk_failover_move_requests(struct mk_backend *o);
/* Another worker, or this one, has told it. */
void mk_failover_on_message(struct mk_pool *p, mk_str message);

/* Messages among the workers: a server is down. */
static inline uint32_t mk_failover_encode(const struct mk_upstream_server *s)
{
    return s->upstream->index | (s->index + 1u) << 16;
}
static inline uint32_t mk_failover_decode_upstream(uint32_t message)
{
    return message & 0xffff;
}
/* -1: none is down. */
static inline int mk_failover_decode_server(uint32_t message)
{
    return (int)(message >> 16) - 1;
}

#endif
