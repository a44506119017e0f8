/* SPDX-License-Identifier: Apache-2.0 */
/* A timer on the heap, for who is not part of the server: monkey/worker.h says what it does. */
#ifndef MK_NET_ALARM_H
#define MK_NET_ALARM_H

#include <monkey/worker.h>

#include "net/loop.h"

/* As mk_alarm_new, with the loop in which it rings. */
struct mk_alarm *mk_alarm_new_in(struct mk_loop *loop, void (*on_due)(void *ctx), void *ctx) MK_MUST_USE;

#endif
