/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_cached_head.h"

#include "http/date.h"
#include "http2/hpack.h"
#include "web/response.h"

void mk_h2_cached_head_write(struct mk_buf *out, const struct mk_header_block *whole, uint64_t size)
{
    mk_hpack_encode_status(out, 200);
    for (unsigned i = 0; i < whole->n; i++)
        mk_hpack_encode(out, whole->fields[i].name, whole->fields[i].value);
    mk_hpack_encode_num(out, MK_STR("Content-Length"), size);
}

void mk_h2_cached_head_write_date(struct mk_common_headers *s)
{
    struct mk_buf packed = mk_buf_fixed(s->packed, sizeof s->packed);
    mk_hpack_encode(&packed, MK_STR("Server"), mk_common_headers_server_name(s));
    s->packed_server_len = packed.len;
    mk_hpack_encode(&packed, MK_STR("Date"), mk_str_of(s->text + s->date_at, MK_DATE_LEN));
    s->packed_len = packed.len;
}
