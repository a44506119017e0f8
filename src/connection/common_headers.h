/* SPDX-License-Identifier: Apache-2.0 */
/* The Server and Date headers of every response, formatted at most once a second. */
#ifndef MK_CONNECTION_COMMON_HEADERS_H
#define MK_CONNECTION_COMMON_HEADERS_H

#include "base/buf.h"
#include "http/date.h"
#include "web/response.h"

enum { MK_COMMON_HEADERS_MAX = 128 };

struct mk_common_headers {
    int64_t written; /* when the headers were last formatted: seconds since 1970 */
    size_t len, server_len, date_at;
    char text[MK_COMMON_HEADERS_MAX];
    size_t packed_len; /* length of `packed`; 0: HTTP/2 is not available */
    size_t packed_server_len;
    char packed[MK_COMMON_HEADERS_MAX]; /* the same headers, HPACK-encoded; the date is last */
};

/* Initializes the headers; truncates a server name that is too long. */
static inline void mk_common_headers_init(struct mk_common_headers *s, mk_str server_name)
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

static inline void mk_common_headers_update_date(struct mk_common_headers *s, int64_t now)
{
    mk_date_write(s->text + s->date_at, now);
    if (s->packed_len)
        memcpy(s->packed + s->packed_len - MK_DATE_LEN, s->text + s->date_at, MK_DATE_LEN);
    s->written = now;
}

/* The Server value. */
static inline mk_str mk_common_headers_server_name(const struct mk_common_headers *s)
{
    size_t from = sizeof "Server: " - 1;
    return mk_str_of(s->text + from, s->server_len - from - (sizeof "\r\n" - 1));
}

/* "Server: ...\r\nDate: ...\r\n", valid until the next call. In memory, the empty line that ends a head
 * follows directly. */
static inline mk_str mk_common_headers_at(struct mk_common_headers *s, int64_t now)
{
    if (s->written != now)
        mk_common_headers_update_date(s, now);
    return mk_str_of(s->text, s->len);
}

/* The headers of mk_common_headers_at(), HPACK-encoded; valid until the next call. Call it only if HTTP/2 is
 * available. */
static inline mk_str mk_common_headers_hpack_at(struct mk_common_headers *s, int64_t now)
{
    if (s->written != now)
        mk_common_headers_update_date(s, now);
    return mk_str_of(s->packed, s->packed_len);
}

/* Removes headers that the response sets itself (`own`: MK_RESPONSE_OWN_...) from the text of
 * mk_common_headers_at(), in which the Server line has `server_len` bytes. */
static inline mk_str mk_common_headers_without_own(mk_str stamp, size_t server_len, unsigned own)
{
    if (MK_UNLIKELY(own & MK_RESPONSE_OWN_DATE))
        stamp.len = server_len;
    return MK_UNLIKELY(own & MK_RESPONSE_OWN_SERVER) ? mk_str_skip(stamp, server_len) : stamp;
}

#endif
