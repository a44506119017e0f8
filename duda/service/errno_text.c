/* SPDX-License-Identifier: Apache-2.0 */
#include "service/errno_text.h"

#include <stdio.h>
#include <string.h>

/* The C library may lack this function: musl, and glibc before 2.32. */
extern const char *strerrorname_np(int error) __attribute__((weak));

const char *duda_errno_text(int result, char out[DUDA_ERRNO_TEXT_SIZE])
{
    const char *name = strerrorname_np ? strerrorname_np(-result) : NULL;
    if (name)
        snprintf(out, DUDA_ERRNO_TEXT_SIZE, "-%s (%s)", name, strerror(-result));
    else
        snprintf(out, DUDA_ERRNO_TEXT_SIZE, "%d (%s)", result, strerror(-result));
    return out;
}
