/* SPDX-License-Identifier: Apache-2.0 */
/* How long an exchange waits for its server. The alarm is set seldom: what was awaited since is looked at
 * when it rings. */
#ifndef MK_CLIENT_CLIENT_CLOCK_H
#define MK_CLIENT_CLIENT_CLOCK_H

#include "client/client_type.h"

/* With an alarm that calls on_due(c), if there is a limit. False: no memory. */
bool mk_client_clock_start(struct mk_client *c, void (*on_due)(void *c),
                           void (*on_later)(void *c)) MK_MUST_USE;
void mk_client_clock_fini(struct mk_client *c);
/* Rings after so long as well, for mk_client_clock_is_look(). False: no memory. */
bool mk_client_clock_look(struct mk_client *c, uint32_t ms);
/* It rang: is it for that? Once. */
bool mk_client_clock_is_look(struct mk_client *c);
/* Calls on_later(c) at the end of the turn. */
void mk_client_clock_defer(struct mk_client *c);
/* What we wait for from now on, or go on waiting for. */
void mk_client_clock_await(struct mk_client *c, enum mk_client_awaits what);
/* The head of the response: its beginning, or the rest of it. */
void mk_client_clock_await_head(struct mk_client *c);
/* In on_due: is it over? Else the alarm is set again, as far as there is a limit. */
bool mk_client_clock_is_due(struct mk_client *c) MK_MUST_USE;
/* What took too long; static. */
const char *mk_client_clock_problem(const struct mk_client *c);

#endif
