/* SPDX-License-Identifier: Apache-2.0 */
/* The moves of an exchange, and its ends. */
#ifndef MK_CLIENT_CLIENT_STATE_H
#define MK_CLIENT_CLIENT_STATE_H

#include "client/client_type.h"

extern const uint8_t mk_client_state_moves[MK_CLIENT_STATES],
    mk_client_state_output_moves[MK_CLIENT_OUTPUT_STATES];

static inline void mk_client_state_move(struct mk_client *c, enum mk_client_state to)
{
    MK_ASSERT(mk_client_state_moves[c->state] >> to & 1);
    c->state = (uint8_t)to;
}

static inline void mk_client_state_move_output(struct mk_client *c, enum mk_client_output to)
{
    MK_ASSERT(mk_client_state_output_moves[c->output] >> to & 1);
    c->output = (uint8_t)to;
}

/* Is there a connection that can be used? */
static inline bool mk_client_state_is_connected(const struct mk_client *c)
{
    return c->state == MK_CLIENT_OPEN || c->state == MK_CLIENT_CONTENT || c->state == MK_CLIENT_UPGRADED;
}

/* Gives the connection back, if there is one: its exchange is complete. */
void mk_client_state_release(struct mk_client *c, enum mk_link_end how);
/* The same in the middle of the exchange: the server may be at work on the request, and counts as such. */
void mk_client_state_abandon(struct mk_client *c, enum mk_link_end how);
/* Is it a response without an end, as text/event-stream? */
bool mk_client_state_is_event_stream(const struct mk_client *c);
/* It cannot be completed. `problem` is static. */
void mk_client_state_fail(struct mk_client *c, int error, const char *problem, enum mk_link_end how);
/* No more of the request can be sent; the response may be there. */
void mk_client_state_break(struct mk_client *c, int error, const char *problem);

#endif
