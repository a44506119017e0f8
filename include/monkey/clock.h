/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks. In a worker, mk_worker_now_ms() and mk_worker_now() cost nothing. From any thread. */
#ifndef MONKEY_CLOCK_H
#define MONKEY_CLOCK_H

#include <monkey/api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Milliseconds of a monotonic clock, whose zero is arbitrary and the same in all processes. In ticks of the kernel, 1 to
 * 10 ms: cheap. */
MK_API uint64_t mk_clock_ms(void);
/** The same clock in microseconds, at full resolution. */
MK_API uint64_t mk_clock_us(void);
/** Milliseconds since 1970. */
MK_API uint64_t mk_clock_unix_ms(void);

#ifdef __cplusplus
}
#endif

#endif
