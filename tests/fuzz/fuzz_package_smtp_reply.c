/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are parsed as mail server replies or rejected, regardless of how they are split. In any formatted
 * message, the terminating dot is only at the end. */
#include <errno.h>
#include <smtp/protocol.h>

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_reply(mk_str in, const struct smtp_reply *r, size_t n)
{
    struct smtp_reply less;
    struct mk_buf text = mk_buf_growing(1 << 20);
    MK_ASSERT(n <= in.len && r->code >= 200 && r->code <= 599 && r->lines.p == in.p && r->lines.len == n);
    smtp_reply_format_printable(&text, r);
    for (size_t i = 0; i < text.len; i++)
        MK_ASSERT(text.p[i] >= ' ' && text.p[i] <= '~');
    (void)smtp_extensions_parse(r);
    for (size_t cut = n > 8 ? n - 8 : 0; cut < n; cut++)
        MK_ASSERT(smtp_reply_parse(mk_str_first(in, cut), &less) == 0);
    mk_buf_free(&text);
}

static bool has(mk_str s, size_t at, const char *text)
{
    return mk_str_starts(mk_str_skip(s, at), mk_str_from_c(text));
}

static void check_message(mk_str in)
{
    struct mk_buf out = mk_buf_growing(1 << 22);
    int e = smtp_data_format(&out, in);
    mk_str data = mk_buf_str(&out);
    MK_ASSERT(e == 0 || e == -EINVAL || e == -ENOMEM);
    for (size_t i = 0; !e && i < data.len; i++) {
        MK_ASSERT((data.p[i] == '\r') == has(data, i, "\r\n"));
        MK_ASSERT(data.p[i] != '\n' || (i && data.p[i - 1] == '\r'));
        if (i == 0 || data.p[i - 1] == '\n')
            MK_ASSERT(!has(data, i, ".\r\n") || i + 3 == data.len);
    }
    MK_ASSERT(e || mk_str_ends(data, MK_STR(".\r\n")));
    mk_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct smtp_reply r;
    mk_str all = mk_str_of((const char *)data, size), in = all;
    ssize_t n;
    while ((n = smtp_reply_parse(in, &r)) > 0) {
        check_reply(in, &r, (size_t)n);
        in = mk_str_skip(in, (size_t)n);
    }
    MK_ASSERT(n == 0 || n == -EPROTO);
    check_message(all);
    return 0;
}
