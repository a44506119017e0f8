/* SPDX-License-Identifier: Apache-2.0 */
/* The two fields that every response has, ready as text: Server and Date. Written once a second at most. */
#ifndef MK_PROTO_STAMP_H
#define MK_PROTO_STAMP_H

#include "base/str.h"

enum { MK_STAMP_MAX = 128 };

struct mk_stamp {
    int64_t written; /* for which second */
    size_t len, date_at;
    char text[MK_STAMP_MAX];
    size_t packed_len;
    char packed[MK_STAMP_MAX]; /* the same in the form of HTTP/2 */
};

/* A name that leaves no room is cut. */
void mk_stamp_init(struct mk_stamp *s, mk_str server_name);
void mk_stamp_write(struct mk_stamp *s, int64_t now);

/* "Server: ...\r\nDate: ...\r\n", valid until the next call; the empty line that ends a head stands right
 * behind it. */
static inline mk_str mk_stamp_at(struct mk_stamp *s, int64_t now)
{
    if (s->written != now)
        mk_stamp_write(s, now);
    return mk_str_of(s->text, s->len);
}

/* The same two fields in the form of HTTP/2; valid as long. */
static inline mk_str mk_stamp_packed_at(struct mk_stamp *s, int64_t now)
{
    if (s->written != now)
        mk_stamp_write(s, now);
    return mk_str_of(s->packed, s->packed_len);
}

#endif
