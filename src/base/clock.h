/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks. The loop reads them once per iteration and passes the time down; few requests read them again. */
#ifndef MK_BASE_CLOCK_H
#define MK_BASE_CLOCK_H

#include <monkey/clock.h>

#include "base/compiler.h"

/* Resolution of mk_clock_ms(): the number of milliseconds by which it may lag. */
unsigned mk_clock_ms_step(void);
/* Seconds since 1970. */
int64_t mk_clock_unix(void);

#endif
