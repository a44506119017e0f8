/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/gateway_errors.h"

void mk_gateway_errors_end(struct mk_gateway_errors *e)
{
    uint32_t len = e->len;
    if (len && e->line[len - 1] == '\r')
        len--;
    e->len = 0;
    if (len)
        e->say(e->ctx, mk_str_of(e->line, len));
}

/* A NUL would end the message; the log replaces other control characters. */
static void add(struct mk_gateway_errors *e, char c)
{
    if (c == '\n') {
        mk_gateway_errors_end(e);
        return;
    }
    if (e->len == sizeof e->line)
        mk_gateway_errors_end(e);
    e->line[e->len++] = c ? c : '?';
}

void mk_gateway_errors_add(struct mk_gateway_errors *e, mk_str text)
{
    for (size_t i = 0; i < text.len && e->seen < MK_GATEWAY_ERRORS; i++) {
        add(e, text.p[i]);
        if (++e->seen < MK_GATEWAY_ERRORS)
            continue;
        mk_gateway_errors_end(e);
        e->say(e->ctx, MK_STR("(this is more than 64 KB: the rest is not logged)"));
    }
}
