/* SPDX-License-Identifier: Apache-2.0 */
/* Field lines (RFC 9110, section 5): the names we know, a set of lines, and lists inside of values.
 *
 * A set of fields is an array that the caller owns. For names we know, the place of the first line is kept,
 * so that asking for one costs a load, and asking for an absent one nothing more. */
#ifndef MK_HTTP_HEADER_H
#define MK_HTTP_HEADER_H

#include <monkey/text.h>

#include "base/str.h"

/* The names that the server, its protocols and its common plugins ask for. Every value fits a uint8_t. */
enum mk_header_id {
    MK_HEADER_OTHER, /* any name that is not listed */
    MK_HEADER_ACCEPT,
    MK_HEADER_ACCEPT_ENCODING,
    MK_HEADER_ACCEPT_LANGUAGE,
    MK_HEADER_ACCEPT_RANGES,
    MK_HEADER_AGE,
    MK_HEADER_ALLOW,
    MK_HEADER_AUTHORIZATION,
    MK_HEADER_CACHE_CONTROL,
    MK_HEADER_CONNECTION,
    MK_HEADER_CONTENT_DISPOSITION,
    MK_HEADER_CONTENT_ENCODING,
    MK_HEADER_CONTENT_LANGUAGE,
    MK_HEADER_CONTENT_LENGTH,
    MK_HEADER_CONTENT_LOCATION,
    MK_HEADER_CONTENT_RANGE,
    MK_HEADER_CONTENT_TYPE,
    MK_HEADER_COOKIE,
    MK_HEADER_DATE,
    MK_HEADER_DESTINATION, /* of WebDAV (RFC 4918, section 10.3) */
    MK_HEADER_ETAG,
    MK_HEADER_EXPECT,
    MK_HEADER_EXPIRES,
    MK_HEADER_FORWARDED,
    MK_HEADER_HOST,
    MK_HEADER_HTTP2_SETTINGS,
    MK_HEADER_IF_MATCH,
    MK_HEADER_IF_MODIFIED_SINCE,
    MK_HEADER_IF_NONE_MATCH,
    MK_HEADER_IF_RANGE,
    MK_HEADER_IF_UNMODIFIED_SINCE,
    MK_HEADER_KEEP_ALIVE,
    MK_HEADER_LAST_MODIFIED,
    MK_HEADER_LINK,
    MK_HEADER_LOCATION,
    MK_HEADER_MAX_FORWARDS,
    MK_HEADER_ORIGIN,
    MK_HEADER_PRAGMA,
    MK_HEADER_PRIORITY,
    MK_HEADER_PROXY_AUTHENTICATE,
    MK_HEADER_PROXY_AUTHORIZATION,
    MK_HEADER_PROXY_CONNECTION,
    MK_HEADER_RANGE,
    MK_HEADER_REFERER,
    MK_HEADER_RETRY_AFTER,
    MK_HEADER_SEC_WEBSOCKET_ACCEPT,
    MK_HEADER_SEC_WEBSOCKET_EXTENSIONS,
    MK_HEADER_SEC_WEBSOCKET_KEY,
    MK_HEADER_SEC_WEBSOCKET_PROTOCOL,
    MK_HEADER_SEC_WEBSOCKET_VERSION,
    MK_HEADER_SERVER,
    MK_HEADER_SET_COOKIE,
    MK_HEADER_STATUS, /* what a CGI program answers with (RFC 3875) */
    MK_HEADER_TE,
    MK_HEADER_TRAILER,
    MK_HEADER_TRANSFER_ENCODING,
    MK_HEADER_UPGRADE,
    MK_HEADER_USER_AGENT,
    MK_HEADER_VARY,
    MK_HEADER_VIA,
    MK_HEADER_WWW_AUTHENTICATE,
    MK_HEADER_X_FORWARDED_FOR,
    MK_HEADER_X_FORWARDED_HOST,
    MK_HEADER_X_FORWARDED_PROTO,
    MK_HEADER_IDS
};

/* Is it about one connection, or the framing on it (RFC 9110, section 7.6.1), whatever Connection says? */
static inline bool mk_header_is_hop_by_hop(unsigned id)
{
    switch (id) {
    case MK_HEADER_CONNECTION:
    case MK_HEADER_CONTENT_LENGTH:
    case MK_HEADER_KEEP_ALIVE:
    case MK_HEADER_PROXY_CONNECTION:
    case MK_HEADER_TE:
    case MK_HEADER_TRANSFER_ENCODING:
    case MK_HEADER_UPGRADE:
        return true;
    default:
        return false;
    }
}

/* No set holds more lines than this, so that a place in it fits a byte. */
enum { MK_HEADERS_MAX = 250 };

/* One line. Name and value point to wherever they came from; the value has no white space around it. */
struct mk_header_field {
    mk_str name, value;
    uint8_t id; /* an enum mk_header_id */
};

/* Elements of Connection in one message, empty ones too: each field is compared with each of them. */
enum { MK_CONNECTION_MAX = 32 };

/* Lines in the order they came in. `at` is room of the caller, for as many lines as it says elsewhere. */
struct mk_headers {
    struct mk_header_field *at;
    unsigned n;
    uint8_t first[MK_HEADER_IDS]; /* 1 + the index of the first line with that id; 0: there is none */
};

/* The id of a name in any case of letters; MK_HEADER_OTHER for a name that is not listed. */
enum mk_header_id mk_header_find_id(mk_str name);

/* No lines, in the room that `at` is. */
void mk_headers_init(struct mk_headers *fields, struct mk_header_field *at);

/* The value of the first line with that id; absent (p == NULL) if there is none. Not for MK_HEADER_OTHER. */
static inline mk_str mk_headers_get(const struct mk_headers *fields, enum mk_header_id id)
{
    unsigned first = fields->first[id];
    return first ? fields->at[first - 1].value : (mk_str){NULL, 0};
}

static inline bool mk_headers_has(const struct mk_headers *fields, enum mk_header_id id)
{
    return fields->first[id] != 0;
}

/* The value of the first line with that name, in any case of letters; absent if there is none. */
mk_str mk_headers_find(const struct mk_headers *fields, mk_str name);

/* All values of one id, in order. Begin with *at = 0; false when there are no more.
 *
 *     mk_str value;
 *     for (unsigned at = 0; mk_headers_next(fields, MK_HEADER_COOKIE, &at, &value);)
 */
bool mk_headers_next(const struct mk_headers *fields, enum mk_header_id id, unsigned *at, mk_str *value);

/* How many elements all lines of that id have; empty ones count. */
size_t mk_headers_count_elements(const struct mk_headers *fields, enum mk_header_id id);
/* Is the token an element of the list that all lines of that id make, in any case of letters? */
bool mk_headers_has_token(const struct mk_headers *fields, enum mk_header_id id, mk_str token);

#endif
