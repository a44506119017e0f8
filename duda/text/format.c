/* SPDX-License-Identifier: Apache-2.0 */
#include "text/format.h"

/* Are there no directives but %s, %d, %u and %%? Most formats have no others. */
static bool is_simple(const char *fmt)
{
    for (; *fmt; fmt++)
        if (*fmt == '%') {
            char c = *++fmt;
            if (c != 's' && c != 'd' && c != 'u' && c != '%')
                return false;
        }
    return true;
}

static void add_c(struct mk_buf *out, const char *text)
{
    mk_buf_add(out, mk_str_from_c(text ? text : "(null)")); /* as the libc writes it */
}

static void add_simple(struct mk_buf *out, const char *fmt, va_list args)
{
    for (const char *at; (at = strchr(fmt, '%')); fmt = at + 2) {
        mk_buf_add(out, mk_str_of(fmt, (size_t)(at - fmt)));
        if (at[1] == 's')
            add_c(out, va_arg(args, const char *));
        else if (at[1] == 'd')
            mk_buf_add_int(out, va_arg(args, int));
        else if (at[1] == 'u')
            mk_buf_add_num(out, va_arg(args, unsigned));
        else
            mk_buf_add_char(out, '%');
    }
    mk_buf_add(out, mk_str_from_c(fmt));
}

void duda_format_add(struct mk_buf *out, const char *fmt, va_list args)
{
    if (is_simple(fmt))
        add_simple(out, fmt, args);
    else
        mk_buf_addv(out, fmt, args);
}
