/* SPDX-License-Identifier: Apache-2.0 */
#include "http/ws_extension.h"

#include <monkey/text.h>

#define NAME              "permessage-deflate"
#define SERVER_FORGETS    "server_no_context_takeover"
#define CLIENT_FORGETS    "client_no_context_takeover"
#define SERVER_MAX_WINDOW "server_max_window_bits"
#define CLIENT_MAX_WINDOW "client_max_window_bits"

/* Parameters seen: each may occur once. */
enum { HAS_SERVER_FORGETS = 1, HAS_CLIENT_FORGETS = 2, HAS_SERVER_MAX = 4, HAS_CLIENT_MAX = 8 };

/* Parses a number from 8 to 15 without a leading zero, optionally quoted; 0: invalid. */
static uint8_t parse_window_bits(mk_str s)
{
    uint64_t n;
    if (s.len > 2 && s.p[0] == '"' && s.p[s.len - 1] == '"')
        s = mk_str_of(s.p + 1, s.len - 2);
    if (!s.len || s.p[0] == '0' || !mk_num_parse(s, &n) || n < 8 || n > MK_WS_EXTENSION_BITS_MAX)
        return 0;
    return (uint8_t)n;
}

/* Parses a parameter, and returns its bit; 0: unknown or invalid. */
static unsigned parse_parameter(mk_str name, mk_str value, struct mk_ws_extension *o)
{
    if (mk_str_eq(name, MK_STR(SERVER_FORGETS)) && !value.p)
        return HAS_SERVER_FORGETS;
    if (mk_str_eq(name, MK_STR(CLIENT_FORGETS)) && !value.p)
        return HAS_CLIENT_FORGETS;
    if (mk_str_eq(name, MK_STR(CLIENT_MAX_WINDOW)) && (!value.p || parse_window_bits(value)))
        return HAS_CLIENT_MAX;
    if (!mk_str_eq(name, MK_STR(SERVER_MAX_WINDOW)) || !value.p)
        return 0;
    o->server_bits = parse_window_bits(value);
    return o->server_bits >= MK_WS_EXTENSION_BITS_MIN ? HAS_SERVER_MAX : 0;
}

static bool parse_offer(mk_str element, bool keeps, struct mk_ws_extension *o)
{
    unsigned seen = 0;
    *o = (struct mk_ws_extension){.server_bits = MK_WS_EXTENSION_BITS_MAX};
    if (!mk_str_eq(mk_str_trim(mk_str_cut(&element, ';')), MK_STR(NAME)))
        return false;
    while (element.p) {
        mk_str value = mk_str_cut(&element, ';');
        mk_str name = mk_str_trim(mk_str_cut(&value, '='));
        unsigned which = parse_parameter(name, value.p ? mk_str_trim(value) : value, o);
        if (!which || seen & which)
            return false;
        seen |= which;
    }
    o->server_keeps = keeps && !(seen & HAS_SERVER_FORGETS);
    o->client_keeps = keeps && !(seen & HAS_CLIENT_FORGETS);
    return true;
}

bool mk_ws_extension_negotiate(mk_str value, bool keeps, struct mk_ws_extension *out)
{
    mk_str element;
    while (mk_header_list_next(&value, &element))
        if (parse_offer(element, keeps, out))
            return true;
    return false;
}

void mk_ws_extension_format(const struct mk_ws_extension *o, struct mk_buf *out)
{
    mk_buf_add(out, MK_STR(NAME));
    if (!o->server_keeps)
        mk_buf_add(out, MK_STR("; " SERVER_FORGETS));
    if (!o->client_keeps)
        mk_buf_add(out, MK_STR("; " CLIENT_FORGETS));
    if (o->server_bits < MK_WS_EXTENSION_BITS_MAX)
        mk_buf_addf(out, "; " SERVER_MAX_WINDOW "=%u", o->server_bits);
}
