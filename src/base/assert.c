/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"

#include <stdlib.h>

#include "base/platform.h"

void mk_assert_fail(const char *cond, const char *file, int line)
{
    mk_platform.on_bug(cond, file, line);
    abort();
}
