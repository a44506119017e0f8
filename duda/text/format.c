/* SPDX-License-Identifier: Apache-2.0 */
#include "text/format.h"

static void append_cstr(struct mk_buf *out, const char *text)
{
    mk_buf_put(out, mk_str_from_c(text ? text : "(null)")); /* like libc */
}

/* Handles formats that contain only %s, %d, %u, %zu and %%, as most do. Returns false at any other
 * directive. */
static bool append_simple_format(struct mk_buf *out, const char *fmt, va_list args)
{
    const char *at = strchrnul(fmt, '%');
    for (; *at; at = strchrnul(fmt, '%')) {
        mk_buf_put(out, mk_str_of(fmt, (size_t)(at - fmt)));
        bool is_size = at[1] == 'z' && at[2] == 'u';
        at += is_size ? 2 : 1;
        if (is_size)
            mk_buf_add_num(out, va_arg(args, size_t));
        else if (*at == 's')
            append_cstr(out, va_arg(args, const char *));
        else if (*at == 'd')
            mk_buf_add_int(out, va_arg(args, int));
        else if (*at == 'u')
            mk_buf_add_num(out, va_arg(args, unsigned));
        else if (*at == '%')
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
    va_list again;
    va_copy(again, args);
    if (!append_simple_format(out, fmt, args)) {
        out->len = from;
        mk_buf_addv(out, fmt, again);
    }
    va_end(again);
}
