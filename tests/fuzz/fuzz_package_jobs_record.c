/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is parsed as a job record or rejected; a parsed record is serialized unchanged. */
#include <jobs/job_record.h>

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_within(mk_str all, mk_str s)
{
    return !s.p || (s.p >= all.p && s.p + s.len <= all.p + all.len);
}

static bool is_same(mk_str a, mk_str b)
{
    return (a.p == NULL) == (b.p == NULL) && mk_str_eq(a, b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str in = mk_str_of((const char *)data, size);
    struct job_record r, again;
    if (!job_record_parse(in, &r))
        return 0;
    MK_ASSERT(r.enqueued_ms >= 0 && r.text.p && is_within(in, r.unique) && is_within(in, r.error_text));
    MK_ASSERT(is_within(in, r.text) && r.unique.len + r.error_text.len + r.text.len < in.len);
    struct mk_buf out = mk_buf_growing(size + JOB_RECORD_HEAD);
    job_record_format(&out, &r);
    MK_ASSERT(!out.failed && job_record_parse(mk_buf_str(&out), &again));
    MK_ASSERT(again.enqueued_ms == r.enqueued_ms && is_same(again.unique, r.unique) &&
              is_same(again.text, r.text));
    MK_ASSERT(is_same(again.error_text, mk_str_first(r.error_text, JOB_ERROR_MAX)));
    mk_buf_free(&out);
    return 0;
}
