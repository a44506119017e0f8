/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/common_headers.h"

#include "base/buf.h"
#include "http/date.h"

void mk_common_headers_init(struct mk_common_headers *s, mk_str server_name)
{
    struct mk_buf text = mk_buf_fixed(s->text, sizeof s->text);
    size_t rest = sizeof "Server: \r\nDate: \r\n\r\n" + MK_DATE_LEN;
    mk_buf_add(&text, MK_STR("Server: "));
    mk_buf_add(&text, mk_str_first(server_name, sizeof s->text - rest));
    mk_buf_add(&text, MK_STR("\r\n"));
    s->server_len = text.len;
    mk_buf_add(&text, MK_STR("Date: "));
    s->date_at = text.len;
    memset(s->text + s->date_at, ' ', MK_DATE_LEN);
    memcpy(s->text + s->date_at + MK_DATE_LEN, "\r\n\r\n", 4);
    s->len = s->date_at + MK_DATE_LEN + 2;
    s->packed_len = 0;
    s->written = INT64_MIN;
}

void mk_common_headers_update_date(struct mk_common_headers *s, int64_t now)
{
    mk_date_write(s->text + s->date_at, now);
    if (s->packed_len)
        memcpy(s->packed + s->packed_len - MK_DATE_LEN, s->text + s->date_at, MK_DATE_LEN);
    s->written = now;
}
