/* SPDX-License-Identifier: Apache-2.0 */
/* Writing text: a run of bytes that grows on the heap, or a fixed room that it never leaves.
 *
 * Overflow is sticky: after the first append that did not fit (or could not be allocated) nothing more is
 * written, and `failed` is looked at once, at the end. */
#ifndef MK_BASE_BUF_H
#define MK_BASE_BUF_H

#include <stdarg.h>

#include "base/str.h"

struct mk_buf {
    char *p;
    size_t len, cap;
    size_t max; /* may grow up to so many bytes; 0 for a fixed room */
    bool failed;
};

/* An empty buffer on the heap that may grow to `max` bytes; costs nothing until it is written to. */
static inline struct mk_buf mk_buf_growing(size_t max)
{
    return (struct mk_buf){.max = max};
}

/* A buffer over room that the caller owns. */
static inline struct mk_buf mk_buf_fixed(char *room, size_t cap)
{
    return (struct mk_buf){.p = room, .cap = cap};
}

static inline mk_str mk_buf_str(const struct mk_buf *b)
{
    return mk_str_of(b->p ? b->p : "", b->len);
}

/* Gives the heap memory back (nothing to do for a fixed room) and leaves the buffer empty and usable. */
void mk_buf_free(struct mk_buf *b);
static inline void mk_buf_clear(struct mk_buf *b)
{
    b->len = 0;
    b->failed = false;
}

/* Makes room for `more` bytes behind the last one; false (and failed) if that cannot be. */
bool mk_buf_reserve(struct mk_buf *b, size_t more);

void mk_buf_add(struct mk_buf *b, mk_str s);
void mk_buf_add_char(struct mk_buf *b, char c);
void mk_buf_add_num(struct mk_buf *b, uint64_t n);
void mk_buf_addf(struct mk_buf *b, const char *fmt, ...) MK_PRINTF(2, 3);
void mk_buf_addv(struct mk_buf *b, const char *fmt, va_list args) MK_PRINTF(2, 0);

/* Removes the first n bytes. */
void mk_buf_drop(struct mk_buf *b, size_t n);

#endif
