/* SPDX-License-Identifier: Apache-2.0 */
/* The moves of a request, and its ends. */
#ifndef MK_UPSTREAM_REQUEST_STATE_H
#define MK_UPSTREAM_REQUEST_STATE_H

#include "upstream/request_type.h"

extern const uint8_t mk_upstream_request_state_moves[MK_UPSTREAM_REQUEST_STATES],
    mk_upstream_request_state_output_moves[MK_UPSTREAM_REQUEST_OUTPUT_STATES];

static inline void mk_upstream_request_state_move(struct mk_upstream_request *c,
                                                  enum mk_upstream_request_state to)
{
    MK_ASSERT(mk_upstream_request_state_moves[c->state] >> to & 1);
    c->state = (uint8_t)to;
}

static inline void mk_upstream_request_state_move_output(struct mk_upstream_request *c,
                                                         enum mk_upstream_request_output to)
{
    MK_ASSERT(mk_upstream_request_state_output_moves[c->output] >> to & 1);
    c->output = (uint8_t)to;
}

/* Is there a connection that can be used? */
static inline bool mk_upstream_request_state_is_connected(const struct mk_upstream_request *c)
{
    return c->state == MK_UPSTREAM_REQUEST_OPEN || c->state == MK_UPSTREAM_REQUEST_CONTENT ||
           c->state == MK_UPSTREAM_REQUEST_UPGRADED;
}

/* Releases the connection, if there is one: its request is complete. */
void mk_upstream_request_state_release(struct mk_upstream_request *c, enum mk_upstream_conn_disposition how);
/* The same before it is complete: the server may be at work on it, and the connection counts. */
void mk_upstream_request_state_abandon(struct mk_upstream_request *c, enum mk_upstream_conn_disposition how);
/* Is it a response without an end, as text/event-stream? */
bool mk_upstream_request_state_is_event_stream(const struct mk_upstream_request *c);
/* It cannot be completed. `problem` is static. */
void mk_upstream_request_state_fail(struct mk_upstream_request *c, int error, const char *problem,
                                    enum mk_upstream_conn_disposition how);
/* No more of the request can be sent; the response may be there. */
void mk_upstream_request_state_break(struct mk_upstream_request *c, int error, const char *problem);

#endif
