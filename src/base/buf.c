/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"

enum { FIRST_CAP = 256 };

void mk_buf_free(struct mk_buf *b)
{
    if (b->max) {
        mk_mem_free(b->p);
        b->p = NULL;
        b->cap = 0;
    }
    mk_buf_clear(b);
}

bool mk_buf_reserve(struct mk_buf *b, size_t more)
{
    if (b->failed)
        return false;
    if (b->cap - b->len >= more)
        return true;
    if (b->max < b->len || b->max - b->len < more) {
        b->failed = true;
        return false;
    }
    size_t cap = mk_max(mk_max(b->cap * 2, FIRST_CAP), b->len + more);
    cap = mk_min(cap, b->max);
    char *p = mk_mem_realloc(b->p, cap);
    if (!p) {
        b->failed = true;
        return false;
    }
    b->p = p;
    b->cap = cap;
    return true;
}

MK_NOINLINE void mk_buf_add(struct mk_buf *b, mk_str s)
{
    mk_buf_put(b, s);
}

void mk_buf_add_char(struct mk_buf *b, char c)
{
    mk_buf_put(b, mk_str_of(&c, 1));
}

void mk_buf_add_num(struct mk_buf *b, uint64_t n)
{
    size_t len = mk_num_len(n);
    if ((b->failed || b->cap - b->len < len) && !mk_buf_reserve(b, len))
        return;
    b->len += len;
    mk_num_write_before(b->p + b->len, n);
}

/* Formats in temporary memory: vsnprintf() also writes a NUL, for which the buffer may have no space. */
static MK_PRINTF(3, 0) void append_long_formatted_text(struct mk_buf *b, size_t len, const char *fmt,
                                                       va_list args)
{
    char *text = mk_mem_alloc(len + 1);
    if (!text) {
        b->failed = true;
        return;
    }
    vsnprintf(text, len + 1, fmt, args);
    mk_buf_add(b, mk_str_of(text, len));
    mk_mem_free(text);
}

void mk_buf_addv(struct mk_buf *b, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    char small[256];
    int len = vsnprintf(small, sizeof small, fmt, args);
    if (len < 0)
        b->failed = true;
    else if ((size_t)len < sizeof small)
        mk_buf_add(b, mk_str_of(small, (size_t)len));
    else if (mk_buf_reserve(b, (size_t)len))
        append_long_formatted_text(b, (size_t)len, fmt, again);
    va_end(again);
}

void mk_buf_addf(struct mk_buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    mk_buf_addv(b, fmt, args);
    va_end(args);
}

void mk_buf_consume(struct mk_buf *b, size_t n)
{
    n = mk_min(n, b->len);
    b->len -= n;
    if (b->len && n)
        memmove(b->p, b->p + n, b->len);
}
