/* SPDX-License-Identifier: Apache-2.0 */
/* A build without a decoder. */
#include "base/assert.h"
#include "http/hpack.h"

bool mk_hpack_is_there(void)
{
    return false;
}

struct mk_hpack *mk_hpack_new(void)
{
    return NULL;
}

void mk_hpack_free(struct mk_hpack *h)
{
    MK_ASSERT(!h);
}

mk_err mk_hpack_decode(struct mk_hpack *h, mk_str block, mk_hpack_on_field *on_field, void *ctx)
{
    (void)h;
    (void)block;
    (void)on_field;
    (void)ctx;
    return -EBADMSG;
}
