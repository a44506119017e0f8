/* SPDX-License-Identifier: Apache-2.0 */
/* Writes HTTP/2 heads as lines "name|value\n". */
#ifndef MK_UNIT_HTTP2_H2_HEAD_CASE_H
#define MK_UNIT_HTTP2_H2_HEAD_CASE_H

#include "http2/h2_head.h"

enum { H2HEAD_FIELDS_MAX = 8 };

static const struct mk_request_head_limits h2head_limits = {
    .head_max = 600, .target_max = 64, .fields_max = H2HEAD_FIELDS_MAX};

static inline int h2head_read(struct mk_h2_head *h, struct mk_arena *arena, const char *lines,
                              bool is_trailers)
{
    static struct mk_header_field buffer[H2HEAD_FIELDS_MAX];
    mk_h2_head_init(h, arena, buffer, &h2head_limits, is_trailers);
    for (mk_str rest = mk_str_from_c(lines); rest.len;) {
        mk_str value = mk_str_cut(&rest, '\n'), name = mk_str_cut(&value, '|');
        /* The copies last only for the call, like the buffers of a decoder. */
        char copy[1024];
        if (name.len + value.len > sizeof copy)
            return 999;
        memcpy(copy, name.p, name.len);
        if (value.len)
            memcpy(copy + name.len, value.p, value.len);
        (void)mk_h2_head_on_header(h, mk_str_of(copy, name.len), mk_str_of(copy + name.len, value.len));
        memset(copy, '#', sizeof copy);
    }
    return mk_h2_head_finish(h);
}

#endif
