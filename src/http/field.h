/* SPDX-License-Identifier: Apache-2.0 */
/* Field lines (RFC 9110, section 5): the names we know, a set of lines, and lists inside of values.
 *
 * A set of fields is an array that the caller owns. For names we know, the place of the first line is kept,
 * so that asking for one costs a load, and asking for an absent one nothing more. */
#ifndef MK_HTTP_FIELD_H
#define MK_HTTP_FIELD_H

#include <monkey/text.h>

#include "base/str.h"

/* The names that the server, its protocols and its common plugins ask for. Every value fits a uint8_t. */
enum mk_field_id {
    MK_FIELD_OTHER, /* any name that is not listed */
    MK_FIELD_ACCEPT,
    MK_FIELD_ACCEPT_ENCODING,
    MK_FIELD_ACCEPT_LANGUAGE,
    MK_FIELD_ACCEPT_RANGES,
    MK_FIELD_AGE,
    MK_FIELD_ALLOW,
    MK_FIELD_AUTHORIZATION,
    MK_FIELD_CACHE_CONTROL,
    MK_FIELD_CONNECTION,
    MK_FIELD_CONTENT_DISPOSITION,
    MK_FIELD_CONTENT_ENCODING,
    MK_FIELD_CONTENT_LANGUAGE,
    MK_FIELD_CONTENT_LENGTH,
    MK_FIELD_CONTENT_LOCATION,
    MK_FIELD_CONTENT_RANGE,
    MK_FIELD_CONTENT_TYPE,
    MK_FIELD_COOKIE,
    MK_FIELD_DATE,
    MK_FIELD_DESTINATION, /* of WebDAV (RFC 4918, section 10.3) */
    MK_FIELD_ETAG,
    MK_FIELD_EXPECT,
    MK_FIELD_EXPIRES,
    MK_FIELD_FORWARDED,
    MK_FIELD_HOST,
    MK_FIELD_HTTP2_SETTINGS,
    MK_FIELD_IF_MATCH,
    MK_FIELD_IF_MODIFIED_SINCE,
    MK_FIELD_IF_NONE_MATCH,
    MK_FIELD_IF_RANGE,
    MK_FIELD_IF_UNMODIFIED_SINCE,
    MK_FIELD_KEEP_ALIVE,
    MK_FIELD_LAST_MODIFIED,
    MK_FIELD_LINK,
    MK_FIELD_LOCATION,
    MK_FIELD_MAX_FORWARDS,
    MK_FIELD_ORIGIN,
    MK_FIELD_PRAGMA,
    MK_FIELD_PRIORITY,
    MK_FIELD_PROXY_AUTHENTICATE,
    MK_FIELD_PROXY_AUTHORIZATION,
    MK_FIELD_PROXY_CONNECTION,
    MK_FIELD_RANGE,
    MK_FIELD_REFERER,
    MK_FIELD_RETRY_AFTER,
    MK_FIELD_SEC_WEBSOCKET_ACCEPT,
    MK_FIELD_SEC_WEBSOCKET_EXTENSIONS,
    MK_FIELD_SEC_WEBSOCKET_KEY,
    MK_FIELD_SEC_WEBSOCKET_PROTOCOL,
    MK_FIELD_SEC_WEBSOCKET_VERSION,
    MK_FIELD_SERVER,
    MK_FIELD_SET_COOKIE,
    MK_FIELD_STATUS, /* what a CGI program answers with (RFC 3875) */
    MK_FIELD_TE,
    MK_FIELD_TRAILER,
    MK_FIELD_TRANSFER_ENCODING,
    MK_FIELD_UPGRADE,
    MK_FIELD_USER_AGENT,
    MK_FIELD_VARY,
    MK_FIELD_VIA,
    MK_FIELD_WWW_AUTHENTICATE,
    MK_FIELD_X_FORWARDED_FOR,
    MK_FIELD_X_FORWARDED_HOST,
    MK_FIELD_X_FORWARDED_PROTO,
    MK_FIELD_IDS
};

/* Is it about one connection, or the framing on it (RFC 9110, section 7.6.1), whatever Connection says? */
static inline bool mk_field_is_of_connection(unsigned id)
{
    switch (id) {
    case MK_FIELD_CONNECTION:
    case MK_FIELD_CONTENT_LENGTH:
    case MK_FIELD_KEEP_ALIVE:
    case MK_FIELD_PROXY_CONNECTION:
    case MK_FIELD_TE:
    case MK_FIELD_TRANSFER_ENCODING:
    case MK_FIELD_UPGRADE:
        return true;
    default:
        return false;
    }
}

/* No set holds more lines than this, so that a place in it fits a byte. */
enum { MK_FIELDS_MAX = 250 };

/* One line. Name and value point to wherever they came from; the value has no white space around it. */
struct mk_field {
    mk_str name, value;
    uint8_t id; /* an enum mk_field_id */
};

/* Elements of Connection in one message, empty ones too: each field is compared with each of them. */
enum { MK_CONNECTION_MAX = 32 };

/* Lines in the order they came in. `at` is room of the caller, for as many lines as it says elsewhere. */
struct mk_fields {
    struct mk_field *at;
    unsigned n;
    uint8_t first[MK_FIELD_IDS]; /* 1 + the index of the first line with that id; 0: there is none */
};

/* The id of a name in any case of letters; MK_FIELD_OTHER for a name that is not listed. */
enum mk_field_id mk_field_find_id(mk_str name);

/* No lines, in the room that `at` is. */
void mk_fields_init(struct mk_fields *fields, struct mk_field *at);

/* The value of the first line with that id; absent (p == NULL) if there is none. Not for MK_FIELD_OTHER. */
static inline mk_str mk_fields_get(const struct mk_fields *fields, enum mk_field_id id)
{
    unsigned first = fields->first[id];
    return first ? fields->at[first - 1].value : (mk_str){NULL, 0};
}

static inline bool mk_fields_has(const struct mk_fields *fields, enum mk_field_id id)
{
    return fields->first[id] != 0;
}

/* The value of the first line with that name, in any case of letters; absent if there is none. */
mk_str mk_fields_find(const struct mk_fields *fields, mk_str name);

/* All values of one id, in order. Begin with *at = 0; false when there are no more.
 *
 *     mk_str value;
 *     for (unsigned at = 0; mk_fields_next(fields, MK_FIELD_COOKIE, &at, &value);)
 */
bool mk_fields_next(const struct mk_fields *fields, enum mk_field_id id, unsigned *at, mk_str *value);

/* How many elements all lines of that id have; empty ones count. */
size_t mk_fields_count_elements(const struct mk_fields *fields, enum mk_field_id id);
/* Is the token an element of the list that all lines of that id make, in any case of letters? */
bool mk_fields_has_token(const struct mk_fields *fields, enum mk_field_id id, mk_str token);

#endif
