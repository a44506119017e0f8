/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks. Read once per turn of a loop and passed down, hardly ever per request. */
#ifndef MK_BASE_CLOCK_H
#define MK_BASE_CLOCK_H

#include "base/def.h"

/* Milliseconds of a monotonic clock; its zero is arbitrary. */
uint64_t mk_clock_ms(void);
/* Resolution of mk_clock_ms: how many milliseconds it may lag. */
unsigned mk_clock_ms_step(void);
/* The same clock in microseconds, at full resolution; costs more. */
uint64_t mk_clock_us(void) MK_COLD;
/* Seconds since 1970. */
int64_t mk_clock_unix(void);

#endif
