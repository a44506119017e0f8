/* SPDX-License-Identifier: Apache-2.0 */
/* State machines of the two sides of an HTTP/2 connection, the client's and ours. */
#ifndef MK_HTTP2_H2_STATE_H
#define MK_HTTP2_H2_STATE_H

#include "http2/h2_types.h"

extern const struct mk_state_machine mk_h2_state_remote_machine, mk_h2_state_local_machine;

static inline void mk_h2_state_move_remote(struct mk_h2 *h2, enum mk_h2_remote to)
{
    mk_state_move(&h2->remote, &mk_h2_state_remote_machine, h2, to);
}

static inline void mk_h2_state_move_local(struct mk_h2 *h2, enum mk_h2_local to)
{
    mk_state_move(&h2->local, &mk_h2_state_local_machine, h2, to);
}

/* Has the connection neither failed nor lost its socket? */
static inline bool mk_h2_state_is_alive(const struct mk_h2 *h2)
{
    return h2->local.current != MK_H2_LOCAL_FAILED && h2->local.current != MK_H2_LOCAL_LOST;
}

#endif
