/* SPDX-License-Identifier: Apache-2.0 */
/* An answer of HTTP/1.x as it comes in, piece by piece: its status, and length and SHA-1 of its content.
 * Keeps no content and does no I/O. */
#ifndef WR_ANSWER_H
#define WR_ANSWER_H

#include "base/sha1.h"

enum { WR_ANSWER_LINE_MAX = 16384, WR_ANSWER_HEAD_MAX = 1 << 18 };

enum wr_answer_at {
    WR_ANSWER_STATUS_LINE,
    WR_ANSWER_FIELDS,
    WR_ANSWER_CONTENT,   /* `left` bytes of it */
    WR_ANSWER_UNTIL_END, /* all that comes */
    WR_ANSWER_CHUNK_SIZE,
    WR_ANSWER_CHUNK,
    WR_ANSWER_CHUNK_END,
    WR_ANSWER_TRAILER,
    WR_ANSWER_DONE,
    WR_ANSWER_BROKEN,
};

struct wr_answer {
    enum wr_answer_at at;
    const char *why; /* it is broken */
    unsigned status;
    uint64_t length;
    unsigned char sha1[MK_SHA1_LEN];

    uint64_t left;
    bool has_length, is_chunked;
    size_t head_len, line_len;
    struct mk_sha1 sum;
    char line[WR_ANSWER_LINE_MAX];
};

void wr_answer_init(struct wr_answer *a);
/* False when it is done or broken: no more is wanted. */
bool wr_answer_feed(struct wr_answer *a, mk_str piece);
/* The connection ended: done or broken it is now. */
void wr_answer_end(struct wr_answer *a);

#endif
