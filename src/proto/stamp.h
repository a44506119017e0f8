/* SPDX-License-Identifier: Apache-2.0 */
/* The two fields that every response has, Server and Date, as ready text. Formatted at most once a second. */
#ifndef MK_PROTO_STAMP_H
#define MK_PROTO_STAMP_H

#include "base/str.h"

enum { MK_STAMP_MAX = 128 };

struct mk_stamp {
    int64_t written; /* the second it was formatted for */
    size_t len, date_at;
    char text[MK_STAMP_MAX];
    size_t packed_len;         /* 0: HTTP/2 is not there */
    char packed[MK_STAMP_MAX]; /* the same fields, HPACK-encoded; the date is last */
};

/* Truncates a name that is too long. */
void mk_stamp_init(struct mk_stamp *s, mk_str server_name);
MK_INNER void mk_stamp_write(struct mk_stamp *s, int64_t now);

/* The name of the server. */
static inline mk_str mk_stamp_server(const struct mk_stamp *s)
{
    size_t from = sizeof "Server: " - 1;
    return mk_str_of(s->text + from, s->date_at - from - (sizeof "\r\nDate: " - 1));
}

/* "Server: ...\r\nDate: ...\r\n", valid until the next call. The empty line that ends a head follows
 * directly in memory. */
static inline mk_str mk_stamp_at(struct mk_stamp *s, int64_t now)
{
    if (s->written != now)
        mk_stamp_write(s, now);
    return mk_str_of(s->text, s->len);
}

/* The same two fields, HPACK-encoded; valid as long. Only with HTTP/2. */
static inline mk_str mk_stamp_packed_at(struct mk_stamp *s, int64_t now)
{
    if (s->written != now)
        mk_stamp_write(s, now);
    return mk_str_of(s->packed, s->packed_len);
}

#endif
