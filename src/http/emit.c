/* SPDX-License-Identifier: Apache-2.0 */
#include "http/emit.h"

#include "base/num.h"
#include "http/status.h"

#define VERSION "HTTP/1.1 "

static inline char *put(char *at, mk_str s)
{
    memcpy(at, s.p, s.len);
    return at + s.len;
}

static inline bool has_room(struct mk_buf *out, size_t len)
{
    return MK_LIKELY(!out->failed && out->cap - out->len >= len) || mk_buf_reserve(out, len);
}

void mk_emit_status(struct mk_buf *out, unsigned status)
{
    char number[] = "000 ";
    mk_str line = mk_status_line(status);
    if (line.len == 0) {
        mk_num_write_padded(number, status, 3);
        line = mk_str_of(number, sizeof number - 1); /* the space stays: RFC 9112, section 4 */
    }
    size_t len = sizeof VERSION "\r\n" - 1 + line.len;
    if (!has_room(out, len))
        return;
    char *at = put(out->p + out->len, MK_STR(VERSION));
    at = put(at, line);
    put(at, MK_STR("\r\n"));
    out->len += len;
}

void mk_emit_field(struct mk_buf *out, mk_str name, mk_str value)
{
    size_t len = name.len + value.len + 4;
    if (!has_room(out, len))
        return;
    char *at = put(out->p + out->len, name);
    at = put(at, MK_STR(": "));
    if (value.len)
        at = put(at, value);
    put(at, MK_STR("\r\n"));
    out->len += len;
}

void mk_emit_field_num(struct mk_buf *out, mk_str name, uint64_t value)
{
    char digits[MK_NUM_MAX];
    mk_emit_field(out, name, mk_str_of(digits, mk_num_write(digits, value)));
}

void mk_emit_end(struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("\r\n"));
}

void mk_emit_last_chunk(struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("0\r\n\r\n"));
}
