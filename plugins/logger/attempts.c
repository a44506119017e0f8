/* SPDX-License-Identifier: Apache-2.0 */
#include "attempts.h"

#include <monkey/attempt.h>

/* Writes the time from the beginning of the attempt in seconds, as nginx does; "-" if `until` was not
 * reached. */
static void add_seconds(struct mk_buf *out, const struct mk_attempt *a, uint64_t until)
{
    uint64_t ms = until > a->began_us ? (until - a->began_us) / 1000 : 0;
    if (until)
        mk_buf_addf(out, "%llu.%03u", (unsigned long long)(ms / 1000), (unsigned)(ms % 1000));
    else
        mk_buf_add_char(out, '-');
}

/* As nginx writes it: `10.0.0.1:80`, `[2001:db8::1]:80` or `unix:/path`. */
static void add_address(struct mk_buf *out, const struct mk_attempt *a)
{
    size_t from = out->len;
    if (a->address.is_unix) {
        mk_buf_add(out, a->server);
        return;
    }
    mk_addr_format(&a->address, out);
    bool is_ipv6 = mk_str_find(mk_str_skip(mk_buf_str(out), from), ':') != MK_STR_NONE;
    if (is_ipv6) {
        out->len = from;
        mk_buf_add_char(out, '[');
        mk_addr_format(&a->address, out);
        mk_buf_add_char(out, ']');
    }
    mk_buf_addf(out, ":%u", a->address.port);
}

static void add_property(struct mk_buf *out, const struct mk_attempt *a, enum attempt_property which)
{
    switch (which) {
    case ATTEMPT_ADDRESS:
        add_address(out, a);
        break;
    case ATTEMPT_SERVER:
        mk_buf_add(out, a->server);
        break;
    case ATTEMPT_STATUS:
        if (a->status)
            mk_buf_add_num(out, a->status);
        else
            mk_buf_add_char(out, '-');
        break;
    case ATTEMPT_CONNECT:
        add_seconds(out, a, a->connected_us);
        break;
    case ATTEMPT_HEADER:
        add_seconds(out, a, a->first_byte_us);
        break;
    case ATTEMPT_RESPONSE:
        add_seconds(out, a, a->ended_us);
        break;
    case ATTEMPT_RECEIVED:
        mk_buf_add_num(out, a->received);
        break;
    }
}

mk_str logger_attempts_print(const struct mk_request *request, enum attempt_property which, char *buf,
                             size_t cap)
{
    struct mk_buf text = mk_buf_fixed(buf, cap);
    for (const struct mk_attempt *a = mk_request_attempts(request); a && !text.failed; a = a->next) {
        size_t len = text.len;
        mk_buf_add(&text, len ? MK_STR(", ") : MK_STR(""));
        add_property(&text, a, which);
        if (text.failed) /* a list that is too long ends after a whole element */
            text.len = len;
    }
    return mk_buf_str(&text);
}

size_t logger_attempts_count(const struct mk_request *request)
{
    size_t n = 0;
    for (const struct mk_attempt *a = mk_request_attempts(request); a; a = a->next)
        n++;
    return n;
}
