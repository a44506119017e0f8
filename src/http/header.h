/* SPDX-License-Identifier: Apache-2.0 */
/* Header fields (RFC 9110, section 5): known names, a set of field lines, and list values.
 *
 * The lines of a set are in an array owned by the caller. For each known name, the set stores the index of
 * the first line, so that a lookup is a single load. */
#ifndef MK_HTTP_HEADER_H
#define MK_HTTP_HEADER_H

#include <monkey/text.h>

#include "base/str.h"

/* Names used by the server, its protocols and common plugins. Values fit into a uint8_t. */
enum mk_header_id {
    MK_HEADER_OTHER, /* any other name */
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
    MK_HEADER_DESTINATION, /* WebDAV (RFC 4918, section 10.3) */
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
    MK_HEADER_STATUS, /* CGI response (RFC 3875) */
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

/* Is the header hop-by-hop or a framing header (RFC 9110, section 7.6.1), regardless of Connection? */
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

/* Maximum number of lines in a set, chosen so that an index fits into a byte. */
enum { MK_HEADERS_MAX = 250 };

/* A field line. Name and value are not copied; the value has no surrounding white space. */
struct mk_header_field {
    mk_str name, value;
    uint8_t id; /* an enum mk_header_id */
};

/* Maximum number of elements of Connection per message, including empty elements. There is a limit because
 * each field is compared with each element. */
enum { MK_CONNECTION_MAX = 32 };

/* Field lines in order of arrival. `at` is the caller's memory, whose capacity is specified separately. */
struct mk_headers {
    struct mk_header_field *at;
    unsigned n;
    uint8_t first[MK_HEADER_IDS]; /* 1 + index of the first line with that id; 0: none */
};

/* Returns the ID of a name (case-insensitive); MK_HEADER_OTHER: unknown name. */
enum mk_header_id mk_header_find_id(mk_str name);

/* Initializes an empty set stored in `at`. */
void mk_headers_init(struct mk_headers *fields, struct mk_header_field *at);

/* Returns the value of the first line with that id; absent (p == NULL): none. Not for MK_HEADER_OTHER. */
static inline mk_str mk_headers_get(const struct mk_headers *fields, enum mk_header_id id)
{
    unsigned first = fields->first[id];
    return first ? fields->at[first - 1].value : (mk_str){NULL, 0};
}

static inline bool mk_headers_has(const struct mk_headers *fields, enum mk_header_id id)
{
    return fields->first[id] != 0;
}

/* Returns the value of the first line with that name (case-insensitive); absent: none. */
mk_str mk_headers_find(const struct mk_headers *fields, mk_str name);

/* Implements mk_headers_next() for a header that exists. */
bool mk_headers_find_next(const struct mk_headers *fields, enum mk_header_id id, unsigned *at, mk_str *value);

/* Iterates over the values of all lines with that id, in order. Start with *at = 0; false at the end.
 *
 *     mk_str value;
 *     for (unsigned at = 0; mk_headers_next(fields, MK_HEADER_COOKIE, &at, &value);) */
static inline bool mk_headers_next(const struct mk_headers *fields, enum mk_header_id id, unsigned *at,
                                   mk_str *value)
{
    return MK_UNLIKELY(fields->first[id]) && mk_headers_find_next(fields, id, at, value);
}

/* Returns the number of list elements in all lines of that id, including empty elements. */
size_t mk_headers_count_elements(const struct mk_headers *fields, enum mk_header_id id);
/* Is the token an element of the list (case-insensitive)? */
bool mk_header_list_has(mk_str list, mk_str token);
/* Is the token an element of the combined list of all lines of that id (case-insensitive)? */
bool mk_headers_has_token(const struct mk_headers *fields, enum mk_header_id id, mk_str token);

/* ---- Trailers: fields after the body (RFC 9110, section 6.5) ---- */

/* May a field with that name be a trailer? Not if it must be known before the body: for message framing,
 * routing, authentication, request modifiers or content format (section 6.5.1). Also false for HTTP/2 names
 * that begin with a colon, since they are not tokens. */
bool mk_trailer_is_allowed(mk_str name);

/* Returns the next line of a trailer section validated by mk_chunked_decode(), and advances. False at the
 * end. */
bool mk_trailer_next(mk_str *section, mk_str *name, mk_str *value);

#endif
