/* SPDX-License-Identifier: Apache-2.0 */
/* The moves of a request, and its ends. */
#ifndef MK_UPSTREAM_REQUEST_STATE_H
#define MK_UPSTREAM_REQUEST_STATE_H

#include "upstream/request_type.h"

extern const struct mk_sm_machine mk_upstream_request_machine, mk_upstream_request_output_machine;

static inline void mk_upstream_request_state_move(struct mk_upstream_request *c,
                                                  enum mk_upstream_request_state to)
{
    mk_sm_move(&c->state, &mk_upstream_request_machine, c, to);
}

static inline void mk_upstream_request_state_move_output(struct mk_upstream_request *c,
                                                         enum mk_upstream_request_output to)
{
    mk_sm_move(&c->output, &mk_upstream_request_output_machine, c, to);
}

/* Is there a connection that can be used? */
static inline bool mk_upstream_request_state_is_connected(const struct mk_upstream_request *c)
{
    return c->state.is == MK_UPSTREAM_REQUEST_OPEN || c->state.is == MK_UPSTREAM_REQUEST_CONTENT ||
           c->state.is == MK_UPSTREAM_REQUEST_UPGRADED;
}

/* Releases the connection, if there is one: its request is complete. */
void mk_upstream_request_state_release(struct mk_upstream_request *c, enum mk_upstream_conn_disposition how);
/* The same before it is complete: the server may be at work on it, and the connection counts. */
void mk_upstream_request_state_cancel(struct mk_upstream_request *c, enum mk_upstream_conn_disposition how);
/* Is it a response without an end, as text/event-stream? */
bool mk_upstream_request_state_is_event_stream(const struct mk_upstream_request *c);
/* It cannot be completed. `problem` is static. */
void mk_upstream_request_state_fail(struct mk_upstream_request *c, int error, const char *problem,
                                    enum mk_upstream_conn_disposition how);
/* No more of the request can be sent; the response may be there. */
void mk_upstream_request_state_end_output(struct mk_upstream_request *c, int error, const char *problem);

#endif
