/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the loop as a test counts it: a millisecond passes with each look at it. So what has a time
 * ends after the same number of turns on every machine, however busy it is. CMake wraps the function in tests
 * that include this. */
#ifndef MK_TESTS_UNIT_TICKS_H
#define MK_TESTS_UNIT_TICKS_H

#include <stdint.h>

uint64_t __wrap_mk_clock_ms(void);

uint64_t __wrap_mk_clock_ms(void)
{
    static uint64_t now = 1000;
    return now++;
}

#endif
