/* SPDX-License-Identifier: Apache-2.0 */
/* What time it is. Read once per turn of a loop and handed down, hardly ever per request. */
#ifndef MK_BASE_CLOCK_H
#define MK_BASE_CLOCK_H

#include "base/def.h"

/* Milliseconds of a clock that only goes forward; its zero means nothing. */
uint64_t mk_clock_ms(void);
/* By how much it may be behind. */
unsigned mk_clock_ms_step(void);
/* The same in microseconds, to the microsecond: it costs more. */
uint64_t mk_clock_us(void) MK_COLD;
/* Seconds since 1970. */
int64_t mk_clock_unix(void);

#endif
