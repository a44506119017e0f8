/* SPDX-License-Identifier: Apache-2.0 */
/* Reads header blocks as hexadecimal digits, and shows their decoded fields as lines of text. */
#ifndef MK_UNIT_HTTP2FRAME_HPACK_CASE_H
#define MK_UNIT_HTTP2FRAME_HPACK_CASE_H

#include "http2frame/hpack.h"

enum { HPACK_CASE_BYTES = 1024, HPACK_CASE_LINES = 8192 };

struct hpack_lines {
    char buffer[HPACK_CASE_LINES];
    struct mk_buf text;
    unsigned n, wanted; /* number of decoded fields; number of fields to accept before refusing one */
};

/* Parses "82 86"; spaces may separate bytes. */
static inline mk_str hpack_bytes(const char *hex, char buffer[HPACK_CASE_BYTES])
{
    size_t n = 0;
    for (const char *at = hex; *at && n < HPACK_CASE_BYTES; at += *at == ' ' ? 1 : 2)
        if (*at != ' ')
            buffer[n++] = (char)(mk_char_hex(at[0]) << 4 | mk_char_hex(at[1]));
    return mk_str_of(buffer, n);
}

static inline int hpack_take(void *ctx, mk_str name, mk_str value)
{
    struct hpack_lines *lines = ctx;
    if (lines->n == lines->wanted)
        return 1;
    lines->n++;
    mk_buf_add(&lines->text, name);
    mk_buf_add(&lines->text, MK_STR(": "));
    mk_buf_add(&lines->text, value);
    mk_buf_add_char(&lines->text, '\n');
    return 0;
}

static inline void hpack_lines_init(struct hpack_lines *lines)
{
    lines->text = mk_buf_fixed(lines->buffer, sizeof lines->buffer);
    lines->n = 0;
    lines->wanted = UINT32_MAX;
}

static inline mk_err hpack_decode(struct mk_hpack_decoder *h, mk_str block, struct hpack_lines *lines)
{
    hpack_lines_init(lines);
    return mk_hpack_decode(h, block, hpack_take, lines);
}

#endif
