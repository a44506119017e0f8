/* SPDX-License-Identifier: Apache-2.0 */
/* A record begins with a line of numbers: the enqueue time, and the lengths of the strings that follow;
 * length 0 means absent. */
#include "job_record.h"

void job_record_format(struct mk_buf *out, const struct job_record *r)
{
    mk_str error_text = mk_str_first(r->error_text, JOB_ERROR_MAX);
    mk_buf_addf(out, "%lld %zu %zu\n", (long long)r->enqueued_ms, r->unique.len, error_text.len);
    mk_buf_add(out, r->unique);
    mk_buf_add(out, error_text);
    mk_buf_add(out, r->text);
}

static bool cut_record_text(mk_str *from, uint64_t len, mk_str *out)
{
    if (len > from->len)
        return false;
    *out = len ? mk_str_first(*from, (size_t)len) : MK_STR_NULL;
    *from = mk_str_skip(*from, (size_t)len);
    return true;
}

bool job_record_parse(mk_str in, struct job_record *r)
{
    uint64_t enqueued, unique, error_text;
    mk_str line = mk_str_cut(&in, '\n');
    *r = (struct job_record){0};
    if (!in.p || !mk_num_parse(mk_str_cut(&line, ' '), &enqueued) || enqueued > INT64_MAX ||
        !mk_num_parse(mk_str_cut(&line, ' '), &unique) || !mk_num_parse(line, &error_text))
        return false;
    r->enqueued_ms = (int64_t)enqueued;
    if (!cut_record_text(&in, unique, &r->unique) || !cut_record_text(&in, error_text, &r->error_text))
        return false;
    r->text = in;
    return true;
}
