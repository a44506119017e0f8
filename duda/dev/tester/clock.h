/* SPDX-License-Identifier: Apache-2.0 */
/* Time in tests. duda_test_advance_clock() changes the clocks that the service reads, but not the real time
 * of these functions. */
#ifndef DUDA_DEV_TESTER_CLOCK_H
#define DUDA_DEV_TESTER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the real time in milliseconds. */
uint64_t tester_clock_real_ms(void);
void tester_clock_step_until(uint64_t until_ms);

#endif
