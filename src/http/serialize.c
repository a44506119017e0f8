/* SPDX-License-Identifier: Apache-2.0 */
#include "http/serialize.h"

#include "base/num.h"
#include "http/status.h"

#define VERSION "HTTP/1.1 "

static inline char *put_text(char *at, mk_str s)
{
    memcpy(at, s.p, s.len);
    return at + s.len;
}

static inline bool reserve_inline(struct mk_buf *out, size_t len)
{
    return MK_LIKELY(!out->failed && out->cap - out->len >= len) || mk_buf_reserve(out, len);
}

/* A function of its own, so that mk_serialize_status_line() needs no stack frame. */
MK_NOINLINE static void serialize_other_status_line(struct mk_buf *out, unsigned status)
{
    char number[] = "000 ";
    mk_str line = mk_status_text(status);
    if (line.len == 0) {
        mk_num_write_padded(number, status, 3);
        line = mk_str_of(number, sizeof number - 1); /* the space is required: RFC 9112, section 4 */
    }
    size_t len = sizeof VERSION "\r\n" - 1 + line.len;
    if (!reserve_inline(out, len))
        return;
    char *at = put_text(out->p + out->len, MK_STR(VERSION));
    at = put_text(at, line);
    put_text(at, MK_STR("\r\n"));
    out->len += len;
}

void mk_serialize_status_line(struct mk_buf *out, unsigned status)
{
    if (MK_LIKELY(status == 200))
        mk_buf_put(out, MK_STR(VERSION "200 OK\r\n"));
    else
        serialize_other_status_line(out, status);
}

void mk_serialize_header(struct mk_buf *out, mk_str name, mk_str value)
{
    size_t len = name.len + value.len + 4;
    if (!reserve_inline(out, len))
        return;
    char *at = put_text(out->p + out->len, name);
    at = put_text(at, MK_STR(": "));
    if (value.len)
        at = put_text(at, value);
    put_text(at, MK_STR("\r\n"));
    out->len += len;
}

void mk_serialize_header_num(struct mk_buf *out, mk_str name, uint64_t value)
{
    size_t n_digits = mk_num_len(value), len = name.len + n_digits + 4;
    if (!reserve_inline(out, len))
        return;
    char *at = put_text(out->p + out->len, name);
    at = put_text(at, MK_STR(": ")) + n_digits;
    mk_num_write_before(at, value);
    put_text(at, MK_STR("\r\n"));
    out->len += len;
}

void mk_serialize_head_end(struct mk_buf *out)
{
    mk_buf_put(out, MK_STR("\r\n"));
}

void mk_serialize_last_chunk(struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("0\r\n\r\n"));
}
