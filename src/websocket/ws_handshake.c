/* SPDX-License-Identifier: Apache-2.0 */
#include "websocket/ws_handshake.h"

#include <monkey/text.h>

/* Returns the next value of a list header that may have several lines. */
static bool next_header_value(const struct mk_request *request, mk_str expected, size_t *at, mk_str *value)
{
    mk_str name;
    while (mk_request_header_at(request, (*at)++, &name, value))
        if (mk_str_eq_nocase(name, expected))
            return true;
    return false;
}

/* Does the page come from the same origin as the request? An https page may match a plain request: a proxy in
 * front of us may have terminated TLS. */
static bool is_same_origin(const struct mk_request *request, mk_str origin)
{
    mk_str rest = origin, scheme = mk_str_cut(&rest, ':'), host = mk_request_header(request, MK_STR("Host"));
    if (!host.p)
        host = mk_request_host(request); /* over HTTP/2 there may be no Host header */
    bool fits =
        mk_str_eq_nocase(scheme, mk_request_scheme(request)) || mk_str_eq_nocase(scheme, MK_STR("https"));
    return fits && mk_str_starts(rest, MK_STR("//")) && host.len &&
           mk_str_eq_nocase(mk_str_skip(rest, 2), host);
}

bool mk_ws_handshake_origin_is_allowed(const struct mk_request *request, const char *origins)
{
    mk_str origin = mk_request_header(request, MK_STR("Origin")), list = mk_str_from_c(origins), word;
    if (!origins || !origin.p)
        return true;
    while ((word = mk_str_word(&list)).len)
        if (mk_str_eq(word, MK_STR("same")) ? is_same_origin(request, origin) : mk_str_match(origin, word))
            return true;
    return false;
}

static bool list_has_element(mk_str list, mk_str expected)
{
    mk_str element;
    while (mk_header_list_next(&list, &element))
        if (mk_str_eq(element, expected))
            return true;
    return false;
}

mk_str mk_ws_handshake_subprotocol(const struct mk_request *request, const char *ours)
{
    mk_str value, element;
    for (size_t at = 0; ours && next_header_value(request, MK_STR("Sec-WebSocket-Protocol"), &at, &value);)
        while (mk_header_list_next(&value, &element))
            if (mk_is_token(element) && list_has_element(mk_str_from_c(ours), element))
                return element;
    return MK_STR_NULL;
}

bool mk_ws_handshake_negotiate_deflate(const struct mk_request *request, unsigned flags,
                                       struct mk_ws_extension *out)
{
    mk_str value;
    if (!(flags & MK_WEBSOCKET_COMPRESS) || !mk_ws_deflate_is_supported())
        return false;
    for (size_t at = 0; next_header_value(request, MK_STR("Sec-WebSocket-Extensions"), &at, &value);)
        if (mk_ws_extension_negotiate(value, flags & MK_WEBSOCKET_KEEP_CONTEXT, out))
            return true;
    return false;
}
