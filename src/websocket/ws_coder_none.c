/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "websocket/ws_coder.h"

bool mk_ws_coder_exists(void)
{
    return false;
}

struct mk_ws_coder *mk_ws_coder_new(unsigned bits)
{
    (void)bits;
    return NULL;
}

void mk_ws_coder_free(struct mk_ws_coder *c)
{
    (void)c;
}

int mk_ws_coder_deflate(struct mk_ws_coder *c, mk_str data, bool keeps, struct mk_buf *out)
{
    (void)c, (void)data, (void)keeps, (void)out;
    return -ENOMEM;
}

int mk_ws_coder_inflate(struct mk_ws_coder *c, mk_str data, bool keeps, struct mk_buf *out, uint64_t *cost)
{
    (void)c, (void)data, (void)keeps, (void)out, (void)cost;
    return -ENOMEM;
}

void mk_ws_coder_forget(struct mk_ws_coder *c)
{
    (void)c;
}

void mk_ws_coder_rest(struct mk_ws_coder *c, bool keeps)
{
    (void)c, (void)keeps;
}
