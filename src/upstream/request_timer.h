/* SPDX-License-Identifier: Apache-2.0 */
/* How long a request waits for its server. The timer is set seldom: what was awaited since is looked at
 * when it fires. */
#ifndef MK_UPSTREAM_REQUEST_TIMER_H
#define MK_UPSTREAM_REQUEST_TIMER_H

#include "upstream/request_type.h"

void mk_upstream_request_timer_init(struct mk_upstream_request *c, void (*on_due)(struct mk_timer *t),
                                    void (*on_later)(void *c));
void mk_upstream_request_timer_fini(struct mk_upstream_request *c);
/* Fires after so long as well, for mk_upstream_request_timer_is_check(). */
void mk_upstream_request_timer_set_check(struct mk_upstream_request *c, uint32_t ms);
/* It fired: is it for that? Once. */
bool mk_upstream_request_timer_is_check(struct mk_upstream_request *c);
/* Calls on_later(c) at the end of the turn. */
void mk_upstream_request_timer_run_later(struct mk_upstream_request *c);
/* What we wait for from now on, or go on waiting for. */
void mk_upstream_request_timer_set(struct mk_upstream_request *c, enum mk_upstream_request_wait_kind what);
/* The head of the response: its beginning, or the rest of it. */
void mk_upstream_request_timer_set_head(struct mk_upstream_request *c);
/* In on_due: is it over? Else the timer is set again, as far as there is a limit. */
bool mk_upstream_request_timer_expired(struct mk_upstream_request *c) MK_MUST_USE;
/* What took too long; static. */
const char *mk_upstream_request_timer_text(const struct mk_upstream_request *c);

#endif
