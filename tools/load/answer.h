/* SPDX-License-Identifier: Apache-2.0 */
/* An answer of HTTP/1 as it comes in, in pieces of any size: head, content, end. What it holds of a head that
 * came in pieces is bounded; content is handed on as slices of the input. Does no I/O. */
#ifndef LOAD_ANSWER_H
#define LOAD_ANSWER_H

#include "base/buf.h"
#include "http/chunked.h"
#include "load/head.h"

enum { LOAD_ANSWER_HEAD_MAX = 32 * 1024, LOAD_ANSWER_INTERIM_MAX = 8, LOAD_ANSWER_TRAILERS_MAX = 8192 };

enum load_answer_step {
    LOAD_ANSWER_MORE, /* all of *in was used, and the end is not reached */
    LOAD_ANSWER_DATA, /* *data is a piece of the content, never empty; call again */
    LOAD_ANSWER_END,  /* it is complete; *in is what follows it */
    LOAD_ANSWER_BAD,  /* it is no answer: see `problem` */
};

struct load_answer {
    struct load_head head;
    uint64_t length;     /* bytes of content so far */
    const char *problem; /* static */
    bool begun;          /* some byte of it came */
    uint8_t state;
    uint8_t n_interim;
    uint64_t left;
    struct mk_chunked chunked;
    struct mk_buf text; /* of a head that came in pieces */
};

void load_answer_init(struct load_answer *a);
/* Gives back what it holds; it may be used for the next answer. */
void load_answer_fini(struct load_answer *a);
/* Takes what it can from the beginning of *in and moves *in behind it. How the bytes were cut changes nothing
 * but the pieces of the data. After the end, and after LOAD_ANSWER_BAD, the answer stays the same. */
enum load_answer_step load_answer_next(struct load_answer *a, mk_str *in, mk_str *data) MK_MUST_USE;
/* The server closed: LOAD_ANSWER_END or LOAD_ANSWER_BAD. */
enum load_answer_step load_answer_close(struct load_answer *a) MK_MUST_USE;

#endif
