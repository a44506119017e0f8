/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces Duda's handler memory: each allocation is a separate heap block. */
#ifndef MK_UNIT_PACKAGES_HANDLER_H
#define MK_UNIT_PACKAGES_HANDLER_H

#include <duda/memory.h>

#include "unit/readers/test_allocator.h"

static char handler_buf;
#define HANDLER ((struct duda_ctx *)(void *)&handler_buf)

void *duda_alloc(struct duda_ctx *d, size_t size)
{
    (void)d;
    return pool_alloc(NULL, size);
}

mk_str duda_strdup(struct duda_ctx *d, mk_str text)
{
    char *buffer = duda_alloc(d, text.len + 1);
    if (!buffer)
        return MK_STR_NULL;
    if (text.len)
        memcpy(buffer, text.p, text.len);
    buffer[text.len] = 0;
    return mk_str_of(buffer, text.len);
}

#endif
