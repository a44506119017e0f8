/* SPDX-License-Identifier: Apache-2.0 */
/* Request timeouts. The timer is lazy: re-armed only when it fires; the current deadline is checked then. */
#ifndef MK_UPSTREAM_REQUEST_TIMER_H
#define MK_UPSTREAM_REQUEST_TIMER_H

#include "upstream/request_type.h"

void mk_upstream_request_timer_init(struct mk_upstream_request *c, void (*on_due)(struct mk_timer *t),
                                    void (*on_later)(void *c));
void mk_upstream_request_timer_fini(struct mk_upstream_request *c);
/* Schedules an additional check for mk_upstream_request_timer_is_check(). */
void mk_upstream_request_timer_set_check(struct mk_upstream_request *c, uint32_t ms);
/* Did the timer fire for that check? True only once. */
bool mk_upstream_request_timer_is_check(struct mk_upstream_request *c);
/* Calls on_later(c) at the end of the loop iteration. */
void mk_upstream_request_timer_run_later(struct mk_upstream_request *c);
/* Sets, or keeps, the event that the request waits for. */
void mk_upstream_request_timer_set(struct mk_upstream_request *c, enum mk_upstream_request_wait_kind what);
/* Waits for the response head: its first byte or its remainder. */
void mk_upstream_request_timer_set_head(struct mk_upstream_request *c);
/* Called in on_due: has the deadline passed? Otherwise re-arms the timer, if there is a limit. */
bool mk_upstream_request_timer_expired(struct mk_upstream_request *c) MK_MUST_USE;
/* Describes the wait that timed out (static string). */
const char *mk_upstream_request_timer_text(const struct mk_upstream_request *c);

#endif
