/* SPDX-License-Identifier: Apache-2.0 */
#include "base/platform.h"

#include <stdio.h>
#include <stdlib.h>

static void print_failed_assertion(const char *cond, const char *file, int line)
{
    fprintf(stderr, "monkey: bug: %s is not true (%s:%d)\n", cond, file, line);
}

__attribute__((weak)) const struct mk_platform mk_platform = {
    .owns_process = true,
    .resize = realloc,
    .zalloc = calloc,
    .free = free,
    .on_bug = print_failed_assertion,
};
