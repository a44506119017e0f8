/* SPDX-License-Identifier: Apache-2.0 */
/* Included once by a test that moves the clock of the code under test: the build links the test with
 * --wrap=time. Libraries still use the real clock. */
#ifndef MK_UNIT_LATER_H
#define MK_UNIT_LATER_H

#include <stdint.h>
#include <time.h>

time_t __real_time(time_t *out);
time_t __wrap_time(time_t *out);

static int64_t later_s;

time_t __wrap_time(time_t *out)
{
    time_t now = __real_time(NULL) + (time_t)later_s;
    if (out)
        *out = now;
    return now;
}

#endif
