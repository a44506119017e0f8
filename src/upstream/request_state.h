/* SPDX-License-Identifier: Apache-2.0 */
/* State transitions, timeouts and termination of an upstream request. */
#ifndef MK_UPSTREAM_REQUEST_STATE_H
#define MK_UPSTREAM_REQUEST_STATE_H

#include "upstream/request_type.h"

extern const struct mk_state_machine mk_upstream_request_machine, mk_upstream_request_output_machine;

static inline void mk_upstream_request_state_move(struct mk_upstream_request *c,
                                                  enum mk_upstream_request_state to)
{
    mk_state_move(&c->state, &mk_upstream_request_machine, c, to);
}

static inline void mk_upstream_request_state_move_output(struct mk_upstream_request *c,
                                                         enum mk_upstream_request_output to)
{
    mk_state_move(&c->output, &mk_upstream_request_output_machine, c, to);
}

/* Does the request have a usable connection? */
static inline bool mk_upstream_request_state_is_connected(const struct mk_upstream_request *c)
{
    return c->state.current == MK_UPSTREAM_REQUEST_OPEN || c->state.current == MK_UPSTREAM_REQUEST_CONTENT ||
           c->state.current == MK_UPSTREAM_REQUEST_UPGRADED;
}

/* Call it when the request is complete: releases its connection, if any. */
void mk_upstream_request_state_release(struct mk_upstream_request *c, enum mk_upstream_conn_disposition how);
/* Releases the connection before the request is complete. The server may still be working on the request, so
 * the connection still counts against MaxConnections. */
void mk_upstream_request_state_cancel(struct mk_upstream_request *c, enum mk_upstream_conn_disposition how);
/* Is the response an event stream (text/event-stream), which has no end? */
bool mk_upstream_request_state_is_event_stream(const struct mk_upstream_request *c);
/* Fails the request. `problem` is static. */
void mk_upstream_request_state_fail(struct mk_upstream_request *c, int error, const char *problem,
                                    enum mk_upstream_conn_disposition how);
/* Call it when the request can no longer be sent; a response may still arrive. */
void mk_upstream_request_state_end_output(struct mk_upstream_request *c, int error, const char *problem);

/* ---- Timeouts: a later deadline does not re-arm the timer, but is checked when the timer fires ---- */

void mk_upstream_request_timer_init(struct mk_upstream_request *c, void (*on_due)(struct mk_timer *t),
                                    void (*on_later)(void *c));
void mk_upstream_request_timer_fini(struct mk_upstream_request *c);
/* Schedules an additional check for mk_upstream_request_timer_is_check(). */
void mk_upstream_request_timer_set_check(struct mk_upstream_request *c, uint32_t ms);
/* Did the timer fire for that check? True only once. */
bool mk_upstream_request_timer_is_check(struct mk_upstream_request *c);
/* Calls on_later(c) at the end of the loop iteration. */
void mk_upstream_request_timer_run_later(struct mk_upstream_request *c);
/* Starts the timeout for `what`. Does nothing if the request already waits for that, so the timeout is not
 * extended. MK_UPSTREAM_REQUEST_AWAITS_NOTHING: no timeout. */
void mk_upstream_request_timer_set(struct mk_upstream_request *c, enum mk_upstream_request_wait_kind what);
/* Starts the timeout for the first byte of the response head, or for the rest of the head. */
void mk_upstream_request_timer_set_head(struct mk_upstream_request *c);
/* Starts the limit for all tries. */
void mk_upstream_request_timer_start_total(struct mk_upstream_request *c);
/* Has the limit for all tries passed before the response began? */
bool mk_upstream_request_timer_is_total(const struct mk_upstream_request *c);
/* Has the current server had the whole request, without an answer, for at least half of total_timeout? */
bool mk_upstream_request_timer_is_server_hung(const struct mk_upstream_request *c);
/* Call it in on_due: has the deadline passed? Otherwise re-arms the timer, if there is a limit. */
bool mk_upstream_request_timer_expired(struct mk_upstream_request *c) MK_MUST_USE;
/* Describes the wait that timed out (static string). */
const char *mk_upstream_request_timer_text(const struct mk_upstream_request *c);

#endif
