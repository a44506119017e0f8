/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/cgi.h>

void mk_cgi_stderr_flush(struct mk_cgi_stderr *e)
{
    uint32_t len = e->len;
    if (len && e->line[len - 1] == '\r')
        len--;
    e->len = 0;
    if (len)
        e->on_line(e->ctx, mk_str_of(e->line, len));
}

/* Replaces NUL, which would end the message; the log replaces other control characters. */
static void append_stderr_char(struct mk_cgi_stderr *e, char c)
{
    if (c == '\n') {
        mk_cgi_stderr_flush(e);
        return;
    }
    if (e->len == sizeof e->line)
        mk_cgi_stderr_flush(e);
    e->line[e->len++] = c ? c : '?';
}

void mk_cgi_stderr_add(struct mk_cgi_stderr *e, mk_str text)
{
    for (size_t i = 0; i < text.len && e->remaining; i++) {
        append_stderr_char(e, text.p[i]);
        if (--e->remaining)
            continue;
        mk_cgi_stderr_flush(e);
        e->on_line(e->ctx, mk_str_from_c(e->limit_message));
    }
}
