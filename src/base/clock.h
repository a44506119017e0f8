/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks. The loop reads them once per iteration; most code uses that time instead of reading a clock. */
#ifndef MK_BASE_CLOCK_H
#define MK_BASE_CLOCK_H

#include <monkey/clock.h>

#include "base/compiler.h"

/* Resolution of mk_clock_ms(): the number of milliseconds by which it may lag. */
unsigned mk_clock_ms_resolution(void);
/* Returns the seconds since 1970. */
int64_t mk_clock_unix(void);

#endif
