/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers for text whose length is not known in advance. Thread-safe, as long as each buffer belongs to one
 * thread. */
#ifndef MONKEY_BUF_H
#define MONKEY_BUF_H

#include <monkey/str.h>
#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A buffer for text: either one that grows on the heap, or a fixed array that the caller owns.
 *
 * Overflow is sticky: after the first append that does not fit (or cannot be allocated), nothing more is
 * written. You therefore need to check `failed` only once, at the end.
 *
 *     char buf[256];
 *     struct mk_buf b = mk_buf_fixed(buf, sizeof buf);
 *     mk_buf_addf(&b, "%u items", n);
 *     if (!b.failed)
 *         mk_response_set_body(response, mk_buf_str(&b));
 */
struct mk_buf {
    char *p;
    size_t len, cap;
    size_t max; /**< maximum size in bytes; 0 for a fixed buffer */
    bool failed;
};

/** Creates an empty heap buffer that may grow to `max` bytes. It allocates no memory until the first
 * write. */
static inline struct mk_buf mk_buf_growing(size_t max)
{
    struct mk_buf b = {MK_API_NULL, 0, 0, max, false};
    return b;
}

/** Creates a buffer over an array that the caller owns. */
static inline struct mk_buf mk_buf_fixed(char *buf, size_t cap)
{
    struct mk_buf b = {buf, 0, cap, 0, false};
    return b;
}

/** The contents of the buffer. Valid until the next write, or until the buffer is freed. */
static inline mk_str mk_buf_str(const struct mk_buf *buf)
{
    return mk_str_of(buf->p ? buf->p : "", buf->len);
}

/** Frees the heap memory (a fixed buffer has none). The buffer is then empty and still usable. */
MK_API void mk_buf_free(struct mk_buf *buf);
/** Clears the contents and `failed`, and keeps the memory. */
static inline void mk_buf_clear(struct mk_buf *buf)
{
    buf->len = 0;
    buf->failed = false;
}

/**
 * Reserves space for `more` bytes after the contents. Returns false, and sets `failed`, if that is
 * impossible.
 *
 *     ssize_t n = mk_buf_reserve(&out, 4096) ? read(fd, out.p + out.len, 4096) : -1;
 *     if (n > 0)
 *         out.len += (size_t)n;
 */
MK_API bool mk_buf_reserve(struct mk_buf *buf, size_t more);

/** Appends a string. */
MK_API void mk_buf_add(struct mk_buf *buf, mk_str text);
/** Appends a character. */
MK_API void mk_buf_add_char(struct mk_buf *buf, char c);
/** mk_buf_add() as an inline function, for code that runs for every request: faster, but larger. */
static inline void mk_buf_put(struct mk_buf *buf, mk_str text)
{
    if ((buf->failed || buf->cap - buf->len < text.len) && !mk_buf_reserve(buf, text.len))
        return;
    if (text.len)
        memcpy(buf->p + buf->len, text.p, text.len);
    buf->len += text.len;
}
/**
 * Appends an unsigned decimal number.
 *
 *     mk_buf_add(&out, MK_STR("n="));
 *     mk_buf_add_num(&out, n);
 *     mk_buf_add_char(&out, '\n');
 */
MK_API void mk_buf_add_num(struct mk_buf *buf, uint64_t n);
/** Appends a signed decimal number. */
static inline void mk_buf_add_int(struct mk_buf *buf, int64_t n)
{
    if (n < 0)
        mk_buf_add_char(buf, '-');
    mk_buf_add_num(buf, n < 0 ? ~MK_API_CAST(uint64_t, n) + 1 : MK_API_CAST(uint64_t, n));
}
/** Append formatted text, as printf(3) and vprintf(3) write it. */
MK_API void mk_buf_addf(struct mk_buf *buf, const char *fmt, ...) MK_API_PRINTF(2, 3);
MK_API void mk_buf_addv(struct mk_buf *buf, const char *fmt, va_list args) MK_API_PRINTF(2, 0);

/** Removes the first n bytes, or all if there are fewer. */
MK_API void mk_buf_consume(struct mk_buf *buf, size_t n);

#ifdef __cplusplus
}
#endif

#endif
