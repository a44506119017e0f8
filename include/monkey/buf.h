/* SPDX-License-Identifier: Apache-2.0 */
/* Writing text of a length that is not known before. */
#ifndef MONKEY_BUF_H
#define MONKEY_BUF_H

#include <monkey/str.h>
#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Writing text: a run of bytes that grows on the heap, or a fixed room that it never leaves.
 *
 * Overflow is sticky: after the first append that did not fit (or could not be allocated) nothing more is
 * written, and `failed` is looked at once, at the end.
 *
 *     char room[256];
 *     struct mk_buf b = mk_buf_fixed(room, sizeof room);
 *     mk_buf_addf(&b, "%u items", n);
 *     if (!b.failed)
 *         mk_response_set_body(response, mk_buf_str(&b));
 */
struct mk_buf {
    char *p;
    size_t len, cap;
    size_t max; /**< may grow up to so many bytes; 0 for a fixed room */
    bool failed;
};

/** An empty buffer on the heap that may grow to `max` bytes; costs nothing until it is written to. */
static inline struct mk_buf mk_buf_growing(size_t max)
{
    struct mk_buf b = {MK_API_NULL, 0, 0, max, false};
    return b;
}

/** A buffer over room that the caller owns. */
static inline struct mk_buf mk_buf_fixed(char *room, size_t cap)
{
    struct mk_buf b = {room, 0, cap, 0, false};
    return b;
}

/** What was written; valid until more is, or the buffer is freed. */
static inline mk_str mk_buf_str(const struct mk_buf *b)
{
    return mk_str_of(b->p ? b->p : "", b->len);
}

/** Gives the heap memory back (nothing to do for a fixed room) and leaves the buffer empty and usable. */
MK_API void mk_buf_free(struct mk_buf *b);
/** Forgets what was written, and that it did not fit; the room stays. */
static inline void mk_buf_clear(struct mk_buf *b)
{
    b->len = 0;
    b->failed = false;
}

/** Makes room for `more` bytes behind the last one; false (and failed) if that cannot be. */
MK_API bool mk_buf_reserve(struct mk_buf *b, size_t more);

/** Each appends to what is there: text, a character, a decimal number, what printf(3) would write. */
MK_API void mk_buf_add(struct mk_buf *b, mk_str s);
MK_API void mk_buf_add_char(struct mk_buf *b, char c);
/** mk_buf_add() in the caller, for what every request writes: faster, and larger. */
static inline void mk_buf_put(struct mk_buf *b, mk_str s)
{
    if ((b->failed || b->cap - b->len < s.len) && !mk_buf_reserve(b, s.len))
        return;
    if (s.len)
        memcpy(b->p + b->len, s.p, s.len);
    b->len += s.len;
}
MK_API void mk_buf_add_num(struct mk_buf *b, uint64_t n);
/** With a `-` ahead of a negative one. */
static inline void mk_buf_add_int(struct mk_buf *b, int64_t n)
{
    if (n < 0)
        mk_buf_add_char(b, '-');
    mk_buf_add_num(b, n < 0 ? ~MK_API_CAST(uint64_t, n) + 1 : MK_API_CAST(uint64_t, n));
}
MK_API void mk_buf_addf(struct mk_buf *b, const char *fmt, ...) MK_API_PRINTF(2, 3);
MK_API void mk_buf_addv(struct mk_buf *b, const char *fmt, va_list args) MK_API_PRINTF(2, 0);

/** Removes the first n bytes. */
MK_API void mk_buf_consume(struct mk_buf *b, size_t n);

#ifdef __cplusplus
}
#endif

#endif
