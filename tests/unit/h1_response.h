/* SPDX-License-Identifier: Apache-2.0 */
/* Parses HTTP/1 responses from the bytes that a connection sent, as a strict client would. Independent of
 * cmocka: fuzz targets also use it. */
#ifndef MK_UNIT_H1_RESPONSE_H
#define MK_UNIT_H1_RESPONSE_H

#include <stdio.h>

#include "base/num.h"
#include "http/chunked.h"
#include "http/header.h"
#include "unit/headers.h"

enum { H1_RESPONSE_HEADERS_MAX = 128, H1_RESPONSE_BODY_MAX = 1 << 22 };

enum h1_response_result {
    H1_RESPONSE_BAD = -1, /* malformed: `why` is the reason */
    H1_RESPONSE_NONE,     /* no bytes left */
    H1_RESPONSE_PARTIAL,  /* the response is incomplete */
    H1_RESPONSE_COMPLETE,
};

struct h1_response {
    unsigned status;
    mk_str head; /* includes the empty line */
    struct mk_headers fields;
    struct mk_header_field buffer[H1_RESPONSE_HEADERS_MAX];
    struct mk_buf content;  /* decoded body, which must be freed */
    struct mk_buf trailers; /* fields after the last chunk */
    bool closes;            /* the connection closes after this response */
    const char *why;
};

static inline void h1_response_fini(struct h1_response *r)
{
    mk_buf_free(&r->content);
    mk_buf_free(&r->trailers);
}

static inline enum h1_response_result h1_response_bad(struct h1_response *r, const char *why)
{
    r->why = why;
    return H1_RESPONSE_BAD;
}

/* Parses a status line such as "HTTP/1.1 200 OK". */
static inline bool h1_response_read_status(struct h1_response *r, mk_str line)
{
    uint64_t status;
    if (!mk_str_starts(line, MK_STR("HTTP/1.1 ")) || line.len < 13 || line.p[12] != ' ')
        return false;
    if (!mk_num_parse(mk_str_first(mk_str_skip(line, 9), 3), &status) || status < 100 || status > 599)
        return false;
    r->status = (unsigned)status;
    return mk_is_header_value(mk_str_skip(line, 13));
}

static inline bool h1_response_read_header(struct h1_response *r, mk_str line)
{
    size_t colon = mk_str_find(line, ':');
    mk_str name = mk_str_first(line, colon), value = mk_str_skip(line, colon + 2);
    if (colon == MK_STR_NONE || colon + 1 >= line.len || line.p[colon + 1] != ' ')
        return false;
    return mk_is_token(name) && mk_is_header_value(value) && mk_str_trim(value).len == value.len &&
           headers_add(&r->fields, H1_RESPONSE_HEADERS_MAX, name, value);
}

/* Returns the next line without its CRLF, or an absent string at the end. */
static inline mk_str h1_response_line(mk_str *rest)
{
    size_t end = mk_str_find(*rest, '\n');
    if (end == MK_STR_NONE || end == 0 || rest->p[end - 1] != '\r')
        return MK_STR_NULL;
    mk_str line = mk_str_first(*rest, end - 1);
    *rest = mk_str_skip(*rest, end + 1);
    return line;
}

static inline mk_str h1_response_find_head(mk_str text)
{
    for (size_t i = 0; i + 4 <= text.len; i++)
        if (memcmp(text.p + i, "\r\n\r\n", 4) == 0)
            return mk_str_first(text, i + 4);
    return MK_STR_NULL;
}

static inline enum h1_response_result h1_response_read_head(struct h1_response *r, mk_str *rest)
{
    mk_str head = h1_response_find_head(*rest);
    if (!head.p)
        return mk_str_starts(MK_STR("HTTP/1.1 "), mk_str_first(*rest, 9)) ? H1_RESPONSE_PARTIAL
                                                                          : h1_response_bad(r, "no head");
    r->head = head;
    *rest = mk_str_skip(*rest, head.len);
    if (!h1_response_read_status(r, h1_response_line(&head)))
        return h1_response_bad(r, "the status line");
    for (mk_str line; (line = h1_response_line(&head)).len;)
        if (!h1_response_read_header(r, line))
            return h1_response_bad(r, "a field line");
    return head.len == 0 ? H1_RESPONSE_COMPLETE : h1_response_bad(r, "a line end");
}

static inline bool h1_response_is_twice(const struct h1_response *r, enum mk_header_id id)
{
    unsigned at = 0, n = 0;
    mk_str value;
    while (mk_headers_next(&r->fields, id, &at, &value))
        n++;
    return n > 1;
}

static inline enum h1_response_result h1_response_read_chunks(struct h1_response *r, mk_str *rest)
{
    struct mk_chunked c;
    mk_str data;
    int got;
    mk_chunked_init(&c, 32 * 1024);
    while ((got = mk_chunked_decode(&c, rest, &data)) == MK_CHUNKED_DATA || got == MK_CHUNKED_TRAILERS)
        mk_buf_add(got == MK_CHUNKED_DATA ? &r->content : &r->trailers, data);
    return got == MK_CHUNKED_END ? H1_RESPONSE_COMPLETE
           : got < 0             ? h1_response_bad(r, "a chunk")
                                 : H1_RESPONSE_PARTIAL;
}

static inline enum h1_response_result h1_response_read_length(struct h1_response *r, mk_str *rest,
                                                              mk_str digits)
{
    uint64_t length;
    if (!mk_num_parse(digits, &length))
        return h1_response_bad(r, "the length");
    mk_buf_add(&r->content, mk_str_first(*rest, length < rest->len ? (size_t)length : rest->len));
    *rest = mk_str_skip(*rest, r->content.len);
    return r->content.len == length ? H1_RESPONSE_COMPLETE : H1_RESPONSE_PARTIAL;
}

static inline enum h1_response_result h1_response_read_body(struct h1_response *r, mk_str *rest, bool ended)
{
    mk_str coding = mk_headers_get(&r->fields, MK_HEADER_TRANSFER_ENCODING),
           length = mk_headers_get(&r->fields, MK_HEADER_CONTENT_LENGTH);
    if (coding.p && length.p)
        return h1_response_bad(r, "both length and coding");
    if (coding.p)
        return mk_str_eq(coding, MK_STR("chunked")) ? h1_response_read_chunks(r, rest)
                                                    : h1_response_bad(r, "the coding");
    if (length.p)
        return h1_response_read_length(r, rest, length);
    r->closes = true;
    mk_buf_add(&r->content, *rest);
    *rest = mk_str_skip(*rest, rest->len);
    return ended ? H1_RESPONSE_COMPLETE : H1_RESPONSE_PARTIAL;
}

/* Parses the next final response of *rest and skips the 1xx responses before it (101 counts as final: another
 * protocol follows). Advances *rest past the response. `is_head`: the request was HEAD. `ended`: the
 * connection was closed cleanly after *rest. */
static inline enum h1_response_result h1_response_next(struct h1_response *r, mk_str *rest, bool is_head,
                                                       bool ended)
{
    do {
        memset(r, 0, sizeof *r);
        r->content = mk_buf_growing(H1_RESPONSE_BODY_MAX);
        r->trailers = mk_buf_growing(H1_RESPONSE_BODY_MAX);
        mk_headers_init(&r->fields, r->buffer);
        if (rest->len == 0)
            return H1_RESPONSE_NONE;
        enum h1_response_result got = h1_response_read_head(r, rest);
        if (got != H1_RESPONSE_COMPLETE)
            return got;
    } while (r->status < 200 && r->status != 101);
    if (h1_response_is_twice(r, MK_HEADER_CONTENT_LENGTH) ||
        h1_response_is_twice(r, MK_HEADER_TRANSFER_ENCODING) ||
        h1_response_is_twice(r, MK_HEADER_CONTENT_TYPE) || h1_response_is_twice(r, MK_HEADER_DATE) ||
        h1_response_is_twice(r, MK_HEADER_CONNECTION))
        return h1_response_bad(r, "a field that is there twice");
    /* RFC 9110, section 6.6.1 allows a 5xx response without Date. */
    if (r->status < 500 &&
        (!mk_headers_has(&r->fields, MK_HEADER_DATE) || !mk_headers_has(&r->fields, MK_HEADER_SERVER)))
        return h1_response_bad(r, "no Date or no Server");
    r->closes = mk_headers_has_token(&r->fields, MK_HEADER_CONNECTION, MK_STR("close"));
    if (is_head || r->status == 101 || r->status == 204 || r->status == 304)
        return H1_RESPONSE_COMPLETE;
    return h1_response_read_body(r, rest, ended);
}

static inline mk_str h1_response_header(const struct h1_response *r, enum mk_header_id id)
{
    return mk_headers_get(&r->fields, id);
}

#endif
