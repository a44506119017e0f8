/* SPDX-License-Identifier: Apache-2.0 */
/* A heap-allocated timer for code outside the server core: see monkey/worker.h. */
#ifndef MK_NET_ALARM_H
#define MK_NET_ALARM_H

#include <monkey/worker.h>

#include "net/loop.h"

/* As mk_alarm_new, on the given loop. */
struct mk_alarm *mk_alarm_new_in(struct mk_loop *loop, void (*on_due)(void *ctx), void *ctx) MK_MUST_USE;

#endif
