/* SPDX-License-Identifier: Apache-2.0 */
/* Notices handlers that hold the loop: a thread looks whether the same run of a handler is still under way. It sleeps when no
 * handler runs. A handler that computes is interrupted by a signal, which sees where it is. One that is blocked in a call, such as
 * sleep() or poll(), is not interrupted: the call would end early. */
#ifndef DUDA_SERVICE_HOLD_H
#define DUDA_SERVICE_HOLD_H

#include <stdbool.h>

struct duda_hold;
struct duda_home;

enum { DUDA_HELD_MS = 500 };

/* For the thread that calls it. NULL: no memory or no thread; then nothing is noticed. */
struct duda_hold *duda_hold_start(const struct duda_home *home);
void duda_hold_stop(struct duda_hold *h);

/* A handler begins to run, and does not any more. */
void duda_hold_enter(struct duda_hold *h);
/* True: it has held the loop, and the report is in the post. */
bool duda_hold_leave(struct duda_hold *h);

#endif
