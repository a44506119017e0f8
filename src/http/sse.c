/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <monkey/sized.h>
#include <monkey/sse.h>

#include "base/buf.h"

static bool has_line_end(mk_str s)
{
    return mk_str_find(s, '\n') != MK_STR_NONE || mk_str_find(s, '\r') != MK_STR_NONE;
}

static void append_sse_line(struct mk_buf *out, mk_str field, mk_str value)
{
    mk_buf_add(out, field);
    mk_buf_add(out, value);
    mk_buf_add_char(out, '\n');
}

/* Returns the first line of *rest, and skips it; lines end with CR LF, LF or CR. */
static mk_str next_line(mk_str *rest)
{
    size_t n = 0;
    while (n < rest->len && rest->p[n] != '\n' && rest->p[n] != '\r')
        n++;
    mk_str line = mk_str_first(*rest, n), end = mk_str_skip(*rest, n);
    size_t skip = mk_str_starts(end, MK_STR("\r\n")) ? 2 : 1;
    *rest = end.len ? mk_str_skip(end, skip) : MK_STR_NULL;
    return line;
}

int mk_sse_write_sized(struct mk_buf *out, const struct mk_sse_event *e, size_t e_size)
{
    struct mk_sse_event full;
    e = mk_sized_in(&full, sizeof full, e, e_size);
    size_t from = out->len;
    if (out->failed)
        return -ENOMEM;
    if (has_line_end(e->name) || has_line_end(e->id) || mk_str_find(e->id, '\0') != MK_STR_NONE)
        return -EINVAL;
    if (e->name.len)
        append_sse_line(out, MK_STR("event: "), e->name);
    if (e->id.p)
        append_sse_line(out, MK_STR("id: "), e->id);
    if (e->retry_ms)
        mk_buf_addf(out, "retry: %u\n", e->retry_ms);
    for (mk_str rest = e->data; rest.p;)
        append_sse_line(out, MK_STR("data: "), next_line(&rest));
    mk_buf_add(out, out->len == from ? MK_STR(":\n\n") : MK_STR("\n"));
    if (!out->failed)
        return 0;
    out->len = from;
    out->failed = false;
    return -ENOMEM;
}
