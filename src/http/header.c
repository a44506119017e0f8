/* SPDX-License-Identifier: Apache-2.0 */
#include "http/header.h"

#include "http/scan.h"

static const mk_str names[MK_HEADER_IDS] = {
    [MK_HEADER_OTHER] = MK_STR_INIT(""),
    [MK_HEADER_ACCEPT] = MK_STR_INIT("Accept"),
    [MK_HEADER_ACCEPT_ENCODING] = MK_STR_INIT("Accept-Encoding"),
    [MK_HEADER_ACCEPT_LANGUAGE] = MK_STR_INIT("Accept-Language"),
    [MK_HEADER_ACCEPT_RANGES] = MK_STR_INIT("Accept-Ranges"),
    [MK_HEADER_AGE] = MK_STR_INIT("Age"),
    [MK_HEADER_ALLOW] = MK_STR_INIT("Allow"),
    [MK_HEADER_AUTHORIZATION] = MK_STR_INIT("Authorization"),
    [MK_HEADER_CACHE_CONTROL] = MK_STR_INIT("Cache-Control"),
    [MK_HEADER_CONNECTION] = MK_STR_INIT("Connection"),
    [MK_HEADER_CONTENT_DISPOSITION] = MK_STR_INIT("Content-Disposition"),
    [MK_HEADER_CONTENT_ENCODING] = MK_STR_INIT("Content-Encoding"),
    [MK_HEADER_CONTENT_LANGUAGE] = MK_STR_INIT("Content-Language"),
    [MK_HEADER_CONTENT_LENGTH] = MK_STR_INIT("Content-Length"),
    [MK_HEADER_CONTENT_LOCATION] = MK_STR_INIT("Content-Location"),
    [MK_HEADER_CONTENT_RANGE] = MK_STR_INIT("Content-Range"),
    [MK_HEADER_CONTENT_TYPE] = MK_STR_INIT("Content-Type"),
    [MK_HEADER_COOKIE] = MK_STR_INIT("Cookie"),
    [MK_HEADER_DATE] = MK_STR_INIT("Date"),
    [MK_HEADER_DESTINATION] = MK_STR_INIT("Destination"),
    [MK_HEADER_ETAG] = MK_STR_INIT("ETag"),
    [MK_HEADER_EXPECT] = MK_STR_INIT("Expect"),
    [MK_HEADER_EXPIRES] = MK_STR_INIT("Expires"),
    [MK_HEADER_FORWARDED] = MK_STR_INIT("Forwarded"),
    [MK_HEADER_HOST] = MK_STR_INIT("Host"),
    [MK_HEADER_HTTP2_SETTINGS] = MK_STR_INIT("HTTP2-Settings"),
    [MK_HEADER_IF_MATCH] = MK_STR_INIT("If-Match"),
    [MK_HEADER_IF_MODIFIED_SINCE] = MK_STR_INIT("If-Modified-Since"),
    [MK_HEADER_IF_NONE_MATCH] = MK_STR_INIT("If-None-Match"),
    [MK_HEADER_IF_RANGE] = MK_STR_INIT("If-Range"),
    [MK_HEADER_IF_UNMODIFIED_SINCE] = MK_STR_INIT("If-Unmodified-Since"),
    [MK_HEADER_KEEP_ALIVE] = MK_STR_INIT("Keep-Alive"),
    [MK_HEADER_LAST_MODIFIED] = MK_STR_INIT("Last-Modified"),
    [MK_HEADER_LINK] = MK_STR_INIT("Link"),
    [MK_HEADER_LOCATION] = MK_STR_INIT("Location"),
    [MK_HEADER_MAX_FORWARDS] = MK_STR_INIT("Max-Forwards"),
    [MK_HEADER_ORIGIN] = MK_STR_INIT("Origin"),
    [MK_HEADER_PRAGMA] = MK_STR_INIT("Pragma"),
    [MK_HEADER_PRIORITY] = MK_STR_INIT("Priority"),
    [MK_HEADER_PROXY_AUTHENTICATE] = MK_STR_INIT("Proxy-Authenticate"),
    [MK_HEADER_PROXY_AUTHORIZATION] = MK_STR_INIT("Proxy-Authorization"),
    [MK_HEADER_PROXY_CONNECTION] = MK_STR_INIT("Proxy-Connection"),
    [MK_HEADER_RANGE] = MK_STR_INIT("Range"),
    [MK_HEADER_REFERER] = MK_STR_INIT("Referer"),
    [MK_HEADER_RETRY_AFTER] = MK_STR_INIT("Retry-After"),
    [MK_HEADER_SEC_WEBSOCKET_ACCEPT] = MK_STR_INIT("Sec-WebSocket-Accept"),
    [MK_HEADER_SEC_WEBSOCKET_EXTENSIONS] = MK_STR_INIT("Sec-WebSocket-Extensions"),
    [MK_HEADER_SEC_WEBSOCKET_KEY] = MK_STR_INIT("Sec-WebSocket-Key"),
    [MK_HEADER_SEC_WEBSOCKET_PROTOCOL] = MK_STR_INIT("Sec-WebSocket-Protocol"),
    [MK_HEADER_SEC_WEBSOCKET_VERSION] = MK_STR_INIT("Sec-WebSocket-Version"),
    [MK_HEADER_SERVER] = MK_STR_INIT("Server"),
    [MK_HEADER_SET_COOKIE] = MK_STR_INIT("Set-Cookie"),
    [MK_HEADER_STATUS] = MK_STR_INIT("Status"),
    [MK_HEADER_TE] = MK_STR_INIT("TE"),
    [MK_HEADER_TRAILER] = MK_STR_INIT("Trailer"),
    [MK_HEADER_TRANSFER_ENCODING] = MK_STR_INIT("Transfer-Encoding"),
    [MK_HEADER_UPGRADE] = MK_STR_INIT("Upgrade"),
    [MK_HEADER_USER_AGENT] = MK_STR_INIT("User-Agent"),
    [MK_HEADER_VARY] = MK_STR_INIT("Vary"),
    [MK_HEADER_VIA] = MK_STR_INIT("Via"),
    [MK_HEADER_WWW_AUTHENTICATE] = MK_STR_INIT("WWW-Authenticate"),
    [MK_HEADER_X_FORWARDED_FOR] = MK_STR_INIT("X-Forwarded-For"),
    [MK_HEADER_X_FORWARDED_HOST] = MK_STR_INIT("X-Forwarded-Host"),
    [MK_HEADER_X_FORWARDED_PROTO] = MK_STR_INIT("X-Forwarded-Proto"),
};

/* Perfect hash of a name, computed from its length and its first and last letter. If a new name collides,
 * compilation fails: choose other factors. */
enum { LEN_MAX = 24, PLACES = 256 };
#define PLACE_OF(len, first, last)  ((uint8_t)(21u * (len) + (unsigned)(first) + 11u * (unsigned)(last)))
#define PLACE(len, first, last, id) [PLACE_OF(len, first, last)] = (id)

static const uint8_t ids[PLACES] = {
    PLACE(6, 'a', 't', MK_HEADER_ACCEPT),
    PLACE(15, 'a', 'g', MK_HEADER_ACCEPT_ENCODING),
    PLACE(15, 'a', 'e', MK_HEADER_ACCEPT_LANGUAGE),
    PLACE(13, 'a', 's', MK_HEADER_ACCEPT_RANGES),
    PLACE(3, 'a', 'e', MK_HEADER_AGE),
    PLACE(5, 'a', 'w', MK_HEADER_ALLOW),
    PLACE(13, 'a', 'n', MK_HEADER_AUTHORIZATION),
    PLACE(13, 'c', 'l', MK_HEADER_CACHE_CONTROL),
    PLACE(10, 'c', 'n', MK_HEADER_CONNECTION),
    PLACE(19, 'c', 'n', MK_HEADER_CONTENT_DISPOSITION),
    PLACE(16, 'c', 'g', MK_HEADER_CONTENT_ENCODING),
    PLACE(16, 'c', 'e', MK_HEADER_CONTENT_LANGUAGE),
    PLACE(14, 'c', 'h', MK_HEADER_CONTENT_LENGTH),
    PLACE(16, 'c', 'n', MK_HEADER_CONTENT_LOCATION),
    PLACE(13, 'c', 'e', MK_HEADER_CONTENT_RANGE),
    PLACE(12, 'c', 'e', MK_HEADER_CONTENT_TYPE),
    PLACE(6, 'c', 'e', MK_HEADER_COOKIE),
    PLACE(4, 'd', 'e', MK_HEADER_DATE),
    PLACE(11, 'd', 'n', MK_HEADER_DESTINATION),
    PLACE(4, 'e', 'g', MK_HEADER_ETAG),
    PLACE(6, 'e', 't', MK_HEADER_EXPECT),
    PLACE(7, 'e', 's', MK_HEADER_EXPIRES),
    PLACE(9, 'f', 'd', MK_HEADER_FORWARDED),
    PLACE(4, 'h', 't', MK_HEADER_HOST),
    PLACE(14, 'h', 's', MK_HEADER_HTTP2_SETTINGS),
    PLACE(8, 'i', 'h', MK_HEADER_IF_MATCH),
    PLACE(17, 'i', 'e', MK_HEADER_IF_MODIFIED_SINCE),
    PLACE(13, 'i', 'h', MK_HEADER_IF_NONE_MATCH),
    PLACE(8, 'i', 'e', MK_HEADER_IF_RANGE),
    PLACE(19, 'i', 'e', MK_HEADER_IF_UNMODIFIED_SINCE),
    PLACE(10, 'k', 'e', MK_HEADER_KEEP_ALIVE),
    PLACE(13, 'l', 'd', MK_HEADER_LAST_MODIFIED),
    PLACE(4, 'l', 'k', MK_HEADER_LINK),
    PLACE(8, 'l', 'n', MK_HEADER_LOCATION),
    PLACE(12, 'm', 's', MK_HEADER_MAX_FORWARDS),
    PLACE(6, 'o', 'n', MK_HEADER_ORIGIN),
    PLACE(6, 'p', 'a', MK_HEADER_PRAGMA),
    PLACE(8, 'p', 'y', MK_HEADER_PRIORITY),
    PLACE(18, 'p', 'e', MK_HEADER_PROXY_AUTHENTICATE),
    PLACE(19, 'p', 'n', MK_HEADER_PROXY_AUTHORIZATION),
    PLACE(16, 'p', 'n', MK_HEADER_PROXY_CONNECTION),
    PLACE(5, 'r', 'e', MK_HEADER_RANGE),
    PLACE(7, 'r', 'r', MK_HEADER_REFERER),
    PLACE(11, 'r', 'r', MK_HEADER_RETRY_AFTER),
    PLACE(20, 's', 't', MK_HEADER_SEC_WEBSOCKET_ACCEPT),
    PLACE(24, 's', 's', MK_HEADER_SEC_WEBSOCKET_EXTENSIONS),
    PLACE(17, 's', 'y', MK_HEADER_SEC_WEBSOCKET_KEY),
    PLACE(22, 's', 'l', MK_HEADER_SEC_WEBSOCKET_PROTOCOL),
    PLACE(21, 's', 'n', MK_HEADER_SEC_WEBSOCKET_VERSION),
    PLACE(6, 's', 'r', MK_HEADER_SERVER),
    PLACE(10, 's', 'e', MK_HEADER_SET_COOKIE),
    PLACE(6, 's', 's', MK_HEADER_STATUS),
    PLACE(2, 't', 'e', MK_HEADER_TE),
    PLACE(7, 't', 'r', MK_HEADER_TRAILER),
    PLACE(17, 't', 'g', MK_HEADER_TRANSFER_ENCODING),
    PLACE(7, 'u', 'e', MK_HEADER_UPGRADE),
    PLACE(10, 'u', 't', MK_HEADER_USER_AGENT),
    PLACE(4, 'v', 'y', MK_HEADER_VARY),
    PLACE(3, 'v', 'a', MK_HEADER_VIA),
    PLACE(16, 'w', 'e', MK_HEADER_WWW_AUTHENTICATE),
    PLACE(15, 'x', 'r', MK_HEADER_X_FORWARDED_FOR),
    PLACE(16, 'x', 't', MK_HEADER_X_FORWARDED_HOST),
    PLACE(17, 'x', 'o', MK_HEADER_X_FORWARDED_PROTO),
};

/* Apart from mk_header_find_id(), which needs no stack without this call. */
MK_NOINLINE static enum mk_header_id check_short_name(mk_str name, enum mk_header_id id)
{
    return mk_str_eq_nocase(name, names[id]) ? id : MK_HEADER_OTHER;
}

enum mk_header_id mk_header_find_id(mk_str name)
{
    if (name.len < 2 || name.len > LEN_MAX)
        return MK_HEADER_OTHER;
    unsigned first = (unsigned char)name.p[0] | 0x20u, last = (unsigned char)name.p[name.len - 1] | 0x20u;
    unsigned id = ids[PLACE_OF(name.len, first, last)];
    if (names[id].len != name.len)
        return MK_HEADER_OTHER;
    if (MK_UNLIKELY(name.len < 4))
        return check_short_name(name, (enum mk_header_id)id);
    return mk_scan_is_header_name(name.p, names[id].p, name.len) ? (enum mk_header_id)id : MK_HEADER_OTHER;
}

void mk_headers_init(struct mk_headers *fields, struct mk_header_field *at)
{
    *fields = (struct mk_headers){.at = at};
}

mk_str mk_headers_find(const struct mk_headers *fields, mk_str name)
{
    enum mk_header_id id = mk_header_find_id(name);
    if (id != MK_HEADER_OTHER)
        return mk_headers_get(fields, id);
    for (unsigned i = 0; i < fields->n; i++)
        if (mk_str_eq_nocase(fields->at[i].name, name))
            return fields->at[i].value;
    return (mk_str){NULL, 0};
}

bool mk_headers_find_next(const struct mk_headers *fields, enum mk_header_id id, unsigned *at, mk_str *value)
{
    for (unsigned i = *at ? *at : fields->first[id] - 1u; i < fields->n; i++) {
        if (fields->at[i].id == id) {
            *at = i + 1;
            *value = fields->at[i].value;
            return true;
        }
    }
    return false;
}

bool mk_header_list_has(mk_str list, mk_str token)
{
    mk_str element;
    while (mk_header_list_next(&list, &element))
        if (mk_str_eq_nocase(element, token))
            return true;
    return false;
}

bool mk_headers_has_token(const struct mk_headers *fields, enum mk_header_id id, mk_str token)
{
    mk_str value;
    for (unsigned at = 0; mk_headers_next(fields, id, &at, &value);)
        if (mk_header_list_has(value, token))
            return true;
    return false;
}

size_t mk_headers_count_elements(const struct mk_headers *fields, enum mk_header_id id)
{
    mk_str value;
    size_t n = 0;
    for (unsigned at = 0; mk_headers_next(fields, id, &at, &value); n++)
        for (size_t i = 0; i < value.len; i++)
            n += value.p[i] == ',';
    return n;
}

/* Returns the length of the element that starts at s.p: up to the first comma outside quotes. */
static size_t element_len(mk_str s)
{
    bool quoted = false;
    size_t i = 0;
    for (; i < s.len && (quoted || s.p[i] != ','); i++) {
        if (s.p[i] == '"')
            quoted = !quoted;
        else if (quoted && s.p[i] == '\\')
            i++;
    }
    return mk_min(i, s.len);
}

bool mk_header_list_next(mk_str *rest, mk_str *element)
{
    while (rest->len) {
        size_t len = element_len(*rest);
        *element = mk_str_trim(mk_str_first(*rest, len));
        *rest = mk_str_skip(*rest, len + 1);
        if (element->len)
            return true;
    }
    return false;
}

bool mk_is_token(mk_str s)
{
    return s.len && (mk_scan_is_name(s) || mk_scan_all(s, MK_SCAN_TOKEN));
}

bool mk_is_header_value(mk_str s)
{
    return s.len == 0 || mk_scan_is_plain(s) || mk_scan_value(s.p, s.p + s.len) == s.p + s.len;
}

/* ---- Trailers ---- */

bool mk_trailer_is_allowed(mk_str name)
{
    switch ((int)mk_header_find_id(name)) {
    case MK_HEADER_OTHER:
    case MK_HEADER_ETAG:
    case MK_HEADER_LINK:
    case MK_HEADER_VIA:
        return mk_is_token(name) && !mk_str_eq_nocase(name, MK_STR("Warning"));
    default: /* other known names affect the meaning of a message */
        return false;
    }
}

bool mk_trailer_next(mk_str *section, mk_str *name, mk_str *value)
{
    mk_str line = mk_str_cut(section, '\n');
    if (line.len && line.p[line.len - 1] == '\r')
        line.len--;
    if (!line.len)
        return false;
    *name = mk_str_cut(&line, ':');
    *value = mk_str_trim(line);
    return true;
}
