/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "websocket/ws_deflate.h"

bool mk_ws_deflate_is_supported(void)
{
    return false;
}

struct mk_ws_deflate *mk_ws_deflate_new(unsigned bits)
{
    (void)bits;
    return NULL;
}

void mk_ws_deflate_free(struct mk_ws_deflate *c)
{
    (void)c;
}

int mk_ws_deflate_compress(struct mk_ws_deflate *c, mk_str data, bool keeps, struct mk_buf *out)
{
    (void)c, (void)data, (void)keeps, (void)out;
    return -ENOMEM;
}

int mk_ws_deflate_decompress(struct mk_ws_deflate *c, mk_str data, bool keeps, struct mk_buf *out,
                             uint64_t *cost)
{
    (void)c, (void)data, (void)keeps, (void)out, (void)cost;
    return -ENOMEM;
}

void mk_ws_deflate_reset_compression(struct mk_ws_deflate *c)
{
    (void)c;
}

void mk_ws_deflate_release_memory(struct mk_ws_deflate *c, bool keeps)
{
    (void)c, (void)keeps;
}
