/* SPDX-License-Identifier: Apache-2.0 */
/* The states of an HTTP/2 connection: how far each side is, and which moves are legal. */
#ifndef MK_HTTP2_H2_STATE_H
#define MK_HTTP2_H2_STATE_H

#include "base/assert.h"
#include "http2/h2_types.h"

extern const uint8_t mk_h2_state_remote_moves[MK_H2_REMOTES], mk_h2_state_local_moves[MK_H2_LOCALS];

static inline void mk_h2_state_move_remote(struct mk_h2 *h2, enum mk_h2_remote to)
{
    MK_ASSERT(mk_h2_state_remote_moves[h2->remote] >> to & 1);
    h2->remote = (uint8_t)to;
}

static inline void mk_h2_state_move_local(struct mk_h2 *h2, enum mk_h2_local to)
{
    MK_ASSERT(mk_h2_state_local_moves[h2->local] >> to & 1);
    h2->local = (uint8_t)to;
}

/* Has it neither failed nor lost its socket? */
static inline bool mk_h2_state_is_alive(const struct mk_h2 *h2)
{
    return h2->local != MK_H2_LOCAL_FAILED && h2->local != MK_H2_LOCAL_LOST;
}

#endif
