/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of schemas: nothing that a format accepts may contain characters that could be interpreted
 * elsewhere, and each time that is parsed can be written and parsed again. */
#include <duda/schema.h>

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_format(enum duda_schema_format format, mk_str text)
{
    if (!duda_format_matches(format, text))
        return;
    MK_ASSERT(text.len > 0);
    for (size_t i = 0; i < text.len; i++)
        MK_ASSERT(text.p[i] > ' ' && text.p[i] < 127 && !strchr("<>\"\\", text.p[i]));
}

static void check_timestamp(mk_str text)
{
    int64_t time, again;
    char buf[64];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    if (!duda_timestamp_parse(text, &time))
        return;
    duda_timestamp_write(&out, time);
    MK_ASSERT(!out.failed && duda_timestamp_parse(mk_buf_str(&out), &again) && again == time);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str text = mk_str_of((const char *)data, size);
    for (int format = DUDA_FORMAT_EMAIL; format <= DUDA_FORMAT_DECIMAL; format++)
        check_format((enum duda_schema_format)format, text);
    check_timestamp(text);
    return 0;
}
