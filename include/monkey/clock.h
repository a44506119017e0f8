/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks. Thread-safe. In a worker, mk_worker_now_ms() and mk_worker_now() are cheaper. */
#ifndef MONKEY_CLOCK_H
#define MONKEY_CLOCK_H

#include <monkey/api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Monotonic time in milliseconds, with an arbitrary epoch that all processes share. Cheap to read, because
 * its resolution is only a kernel tick (1 to 10 ms).
 *
 *     uint64_t begin_ms = mk_clock_ms();
 *     ...
 *     printf("%llu ms\n", (unsigned long long)(mk_clock_ms() - begin_ms));
 */
MK_API uint64_t mk_clock_ms(void);
/** The same clock in microseconds, at full resolution. */
MK_API uint64_t mk_clock_us(void);
/** Milliseconds since the Unix epoch. */
MK_API uint64_t mk_clock_unix_ms(void);

#ifdef __cplusplus
}
#endif

#endif
