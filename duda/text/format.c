/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/types.h>

#include "text/format.h"

static void append_cstr(struct mk_buf *out, const char *text)
{
    mk_buf_put(out, mk_str_from_c(text ? text : "(null)")); /* like libc */
}

enum length { LENGTH_INT, LENGTH_LONG, LENGTH_LONG_LONG, LENGTH_SIZE };

/* Reads the length modifier at *at, and moves *at after it. */
static enum length read_length(const char **at)
{
    const char *from = *at;
    if (*from == 'z') {
        *at = from + 1;
        return LENGTH_SIZE;
    }
    while (**at == 'l' && *at - from < 2)
        ++*at;
    return (enum length)(*at - from);
}

static int64_t next_signed(va_list *args, enum length length)
{
    switch (length) {
    case LENGTH_LONG:
        return va_arg(*args, long);
    case LENGTH_LONG_LONG:
        return va_arg(*args, long long);
    case LENGTH_SIZE:
        return va_arg(*args, ssize_t);
    case LENGTH_INT:
        break;
    }
    return va_arg(*args, int);
}

static uint64_t next_unsigned(va_list *args, enum length length)
{
    switch (length) {
    case LENGTH_LONG:
        return va_arg(*args, unsigned long);
    case LENGTH_LONG_LONG:
        return va_arg(*args, unsigned long long);
    case LENGTH_SIZE:
        return va_arg(*args, size_t);
    case LENGTH_INT:
        break;
    }
    return va_arg(*args, unsigned);
}

/* Handles formats that contain only %%, and %s, %d and %u, the numbers with `l`, `ll` or `z`, as most do. Returns
 * false at any other directive. */
static bool append_simple_format(struct mk_buf *out, const char *fmt, va_list *args)
{
    const char *at = strchrnul(fmt, '%');
    for (; *at; at = strchrnul(fmt, '%')) {
        mk_buf_put(out, mk_str_of(fmt, (size_t)(at - fmt)));
        const char *directive = ++at;
        enum length length = read_length(&at);
        if (*at == 'd')
            mk_buf_add_int(out, next_signed(args, length));
        else if (*at == 'u')
            mk_buf_add_num(out, next_unsigned(args, length));
        else if (*at == 's' && at == directive)
            append_cstr(out, va_arg(*args, const char *));
        else if (*at == '%' && at == directive)
            mk_buf_add_char(out, '%');
        else
            return false;
        fmt = at + 1;
    }
    mk_buf_put(out, mk_str_of(fmt, (size_t)(at - fmt)));
    return true;
}

void duda_format_append(struct mk_buf *out, const char *fmt, va_list args)
{
    size_t from = out->len;
    va_list simple; /* a parameter of type va_list may be a pointer, so its address cannot be passed on */
    va_copy(simple, args);
    if (!append_simple_format(out, fmt, &simple)) {
        out->len = from;
        mk_buf_addv(out, fmt, args);
    }
    va_end(simple);
}
