/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void mk_assert_fail(const char *cond, const char *file, int line)
{
    fprintf(stderr, "monkey: bug: %s is not true (%s:%d)\n", cond, file, line);
    abort();
}
