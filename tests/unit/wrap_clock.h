/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the clock of the loop: each read advances it by a millisecond, so that timeouts end after the same
 * number of iterations on every machine, however busy it is. */
#ifndef MK_UNIT_WRAP_CLOCK_H
#define MK_UNIT_WRAP_CLOCK_H

#include <stdint.h>

uint64_t __wrap_mk_clock_ms(void);

uint64_t __wrap_mk_clock_ms(void)
{
    static uint64_t now = 1000;
    return now++;
}

#endif
