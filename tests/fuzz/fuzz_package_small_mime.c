/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is parsed as a media type or rejected; each parameter can be looked up. */
#include <duda/mime.h>

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str text = mk_str_of((const char *)data, size), name, value;
    struct mk_buf buffer = mk_buf_growing(1 << 20), other = mk_buf_growing(1 << 20);
    struct duda_mime mime;
    if (duda_mime_read(text, &mime)) {
        mk_str rest = mime.parameters;
        MK_ASSERT(duda_mime_is(&mime, MK_STR("*/*")) && mime.type.len && mime.subtype.len);
        while (duda_mime_next(&rest, &buffer, &name, &value))
            MK_ASSERT(duda_mime_parameter(&mime, name, &other).p && value.len <= size);
        MK_ASSERT(!rest.len && !buffer.failed);
    }
    mk_buf_free(&buffer);
    mk_buf_free(&other);
    return 0;
}
