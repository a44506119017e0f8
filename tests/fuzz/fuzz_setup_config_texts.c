/* SPDX-License-Identifier: Apache-2.0 */
/* Kept configurations: whatever decodes is encoded and decoded again to equal texts. */
#include <stdlib.h>

#include "setup/config_texts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct mk_config_texts *decode(mk_str encoded)
{
    struct mk_config_texts *t = mk_config_texts_new();
    if (t && mk_config_texts_decode(t, encoded))
        return t;
    mk_config_texts_unref(t);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_config_texts *first = decode(mk_str_of((const char *)data, size));
    if (!first)
        return 0;
    struct mk_buf again = mk_buf_growing(1 << 24);
    mk_config_texts_encode(first, &again);
    struct mk_config_texts *second = decode(mk_buf_str(&again));
    if (!second || !mk_config_texts_equal(first, second))
        abort();
    mk_config_texts_unref(first);
    mk_config_texts_unref(second);
    mk_buf_free(&again);
    return 0;
}
