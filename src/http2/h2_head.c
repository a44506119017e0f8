/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_head.h"

#include "http/authority.h"
#include "http/framing.h"
#include "http/method.h"
#include "http/scan.h"

enum { MALFORMED = MK_H2_HEAD_MALFORMED };

/* A piece of a Cookie header, which clients may split (RFC 9113, section 8.2.3), in a linked list. */
struct mk_h2_cookie_crumb {
    struct mk_h2_cookie_crumb *next;
    mk_str text;
};

static const mk_str crumb_end = MK_STR_INIT("; ");

void mk_h2_head_init(struct mk_h2_head *h, struct mk_arena *arena, struct mk_header_field *buf,
                     const struct mk_request_head_limits *limits, bool is_trailers)
{
    *h = (struct mk_h2_head){
        .port = MK_PORT_NONE, .arena = arena, .limits = limits, .is_trailers = is_trailers};
    h->next_crumb = &h->first_crumb;
    mk_headers_init(&h->fields, buf);
}

/* ---- Header processing: each step returns 0, MALFORMED or a status ---- */

static int count_header_size(struct mk_h2_head *h, mk_str name, mk_str value)
{
    h->size += name.len + value.len + MK_H2_HEAD_HEADER_OVERHEAD;
    return h->size > h->limits->head_max ? 431 : 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Is the value valid? White space around it must not be removed here (RFC 9113, section 8.2.1). */
static bool is_valid_value(mk_str value)
{
    return mk_is_header_value(value) &&
           !(value.len && (is_blank(value.p[0]) || is_blank(value.p[value.len - 1])));
}

static int copy_to_arena(struct mk_h2_head *h, mk_str *to, mk_str from)
{
    char *p = mk_arena_alloc(h->arena, from.len);
    if (!p)
        return 503;
    if (from.len)
        memcpy(p, from.p, from.len);
    *to = mk_str_of(p, from.len);
    return 0;
}

/* Returns the member for the value of a pseudo-header; NULL: not allowed in requests. */
static mk_str *pseudo_header_slot(struct mk_h2_head *h, mk_str name)
{
    if (mk_str_eq(name, MK_STR(":path")))
        return &h->path;
    if (mk_str_eq(name, MK_STR(":method")))
        return &h->method_text;
    if (mk_str_eq(name, MK_STR(":scheme")))
        return &h->scheme;
    if (mk_str_eq(name, MK_STR(":authority")))
        return &h->authority;
    return mk_str_eq(name, MK_STR(":protocol")) ? &h->protocol : NULL;
}

static int add_pseudo_header(struct mk_h2_head *h, mk_str name, mk_str value)
{
    mk_str *place = h->is_trailers || h->is_regular ? NULL : pseudo_header_slot(h, name);
    if (!place || place->p || !is_valid_value(value))
        return MALFORMED;
    if (place == &h->path && value.len > h->limits->target_max)
        return 414;
    int status = count_header_size(h, name, value);
    if (!status)
        status = copy_to_arena(h, place, value);
    if (place == &h->method_text)
        h->method = mk_method_find(h->method_text);
    return status;
}

static int append_header(struct mk_h2_head *h, enum mk_header_id id, mk_str name, mk_str value)
{
    struct mk_headers *fields = &h->fields;
    if (fields->n == h->limits->fields_max)
        return 431;
    fields->at[fields->n] = (struct mk_header_field){.name = name, .value = value, .id = (uint8_t)id};
    fields->n++;
    if (!fields->first[id])
        fields->first[id] = (uint8_t)fields->n;
    return 0;
}

/* Called when the pseudo-headers are complete: inserts Host before the regular headers. */
static int begin_regular_headers(struct mk_h2_head *h)
{
    if (h->is_regular)
        return 0;
    h->is_regular = true;
    return h->authority.p ? append_header(h, MK_HEADER_HOST, MK_STR("host"), h->authority) : 0;
}

static int append_header_copy(struct mk_h2_head *h, enum mk_header_id id, mk_str name, mk_str value)
{
    char *p = mk_arena_alloc(h->arena, name.len + value.len);
    if (!p)
        return 503;
    memcpy(p, name.p, name.len);
    if (value.len)
        memcpy(p + name.len, value.p, value.len);
    return append_header(h, id, mk_str_of(p, name.len), mk_str_of(p + name.len, value.len));
}

/* Returns the explicit port, or the default port of the scheme. */
static uint32_t effective_port(const struct mk_h2_head *h, uint32_t port)
{
    bool is_https = mk_str_eq_nocase(h->scheme, MK_STR("https"));
    return port != MK_PORT_NONE ? port : is_https ? 443 : 80;
}

/* Is Host equivalent to :authority (RFC 9113, section 8.3.1)? */
static int compare_host_to_authority(const struct mk_h2_head *h, mk_str value)
{
    mk_str theirs, ours;
    uint32_t their_port, our_port;
    if (mk_str_eq_nocase(value, h->authority))
        return 0;
    if (mk_authority_parse(value, &theirs, &their_port) || mk_authority_parse(h->authority, &ours, &our_port))
        return 400;
    bool is_same =
        mk_str_eq_nocase(theirs, ours) && effective_port(h, their_port) == effective_port(h, our_port);
    return is_same ? 0 : MALFORMED;
}

static int add_host(struct mk_h2_head *h, mk_str name, mk_str value)
{
    if (h->has_host)
        return 400;
    h->has_host = true;
    return h->authority.p ? compare_host_to_authority(h, value)
                          : append_header_copy(h, MK_HEADER_HOST, name, value);
}

static int add_content_length(struct mk_h2_head *h, mk_str name, mk_str value)
{
    if (h->has_length || !mk_num_parse(value, &h->length))
        return 400;
    h->has_length = true;
    return append_header_copy(h, MK_HEADER_CONTENT_LENGTH, name, value);
}

static int add_cookie(struct mk_h2_head *h, mk_str name, mk_str value)
{
    h->cookie_len += value.len;
    if (!mk_headers_has(&h->fields, MK_HEADER_COOKIE))
        return append_header_copy(h, MK_HEADER_COOKIE, name, value);
    struct mk_h2_cookie_crumb *crumb = mk_arena_alloc(h->arena, sizeof *crumb);
    if (!crumb)
        return 503;
    *crumb = (struct mk_h2_cookie_crumb){0};
    *h->next_crumb = crumb;
    h->next_crumb = &crumb->next;
    h->cookie_len += crumb_end.len;
    return copy_to_arena(h, &crumb->text, value);
}

/* Is it a connection-specific header of HTTP/1, which HTTP/2 forbids (RFC 9113, section 8.2.2)? TE is one,
 * unless its value is "trailers". */
static bool is_connection_specific(enum mk_header_id id, mk_str value)
{
    if (id == MK_HEADER_TE)
        return !mk_str_eq_nocase(value, MK_STR("trailers"));
    return id == MK_HEADER_CONNECTION || id == MK_HEADER_KEEP_ALIVE || id == MK_HEADER_PROXY_CONNECTION ||
           id == MK_HEADER_TRANSFER_ENCODING || id == MK_HEADER_UPGRADE;
}

static int dispatch_regular_header(struct mk_h2_head *h, enum mk_header_id id, mk_str name, mk_str value)
{
    if (h->is_trailers)
        return append_header_copy(h, id, name, value);
    if (id == MK_HEADER_HOST)
        return add_host(h, name, value);
    if (id == MK_HEADER_COOKIE)
        return add_cookie(h, name, value);
    if (id == MK_HEADER_CONTENT_LENGTH)
        return add_content_length(h, name, value);
    return append_header_copy(h, id, name, value);
}

/* Known names are tokens: only unknown names are checked. */
static bool is_valid_name(enum mk_header_id id, mk_str name)
{
    return !mk_scan_has_capitals(name) && (id != MK_HEADER_OTHER || mk_is_token(name));
}

static int add_regular_header(struct mk_h2_head *h, mk_str name, mk_str value)
{
    enum mk_header_id id = mk_header_find_id(name);
    if (!is_valid_name(id, name) || !is_valid_value(value) || is_connection_specific(id, value))
        return MALFORMED;
    int status = count_header_size(h, name, value);
    if (!status)
        status = begin_regular_headers(h);
    return status ? status : dispatch_regular_header(h, id, name, value);
}

int mk_h2_head_on_header(void *head, mk_str name, mk_str value)
{
    struct mk_h2_head *h = head;
    bool is_pseudo = name.len && name.p[0] == ':';
    if (!h->result)
        h->result = is_pseudo ? add_pseudo_header(h, name, value) : add_regular_header(h, name, value);
    return h->result;
}

/* ---- Checks of the whole head ---- */

/* Is the set of pseudo-headers valid? CONNECT has neither scheme nor path, unless it is extended; all other
 * methods have both (RFC 9113, sections 8.3.1 and 8.5). */
static bool has_required_pseudo_headers(const struct mk_h2_head *h)
{
    bool is_connect = h->method == MK_METHOD_CONNECT;
    if (h->protocol.p && (!is_connect || !mk_is_token(h->protocol)))
        return false;
    if (is_connect && !h->protocol.p)
        return h->authority.p && !h->scheme.p && !h->path.p;
    return h->scheme.p && h->path.len > 0;
}

/* Is the target valid? :path must be a path or, for OPTIONS, "*"; an absolute URL is invalid. CONNECT
 * requires a port. */
static int check_target(const struct mk_h2_head *h)
{
    if (h->method == MK_METHOD_CONNECT && !h->protocol.p)
        return h->port == MK_PORT_NONE ? 400 : 0;
    if (!mk_str_eq_nocase(h->scheme, MK_STR("http")) && !mk_str_eq_nocase(h->scheme, MK_STR("https")))
        return 400;
    bool is_asterisk = h->method == MK_METHOD_OPTIONS && mk_str_eq(h->path, MK_STR("*"));
    return is_asterisk || (h->path.p[0] == '/' && mk_scan_all(h->path, MK_SCAN_TARGET)) ? 0 : 400;
}

/* Parses the host even of rejected requests, because the host may have an error page. */
static int parse_authority_or_host(struct mk_h2_head *h)
{
    mk_str value = h->authority.p ? h->authority : mk_headers_get(&h->fields, MK_HEADER_HOST);
    return mk_authority_parse(value, &h->host, &h->port);
}

static int join_cookie_crumbs(struct mk_h2_head *h)
{
    if (!h->first_crumb)
        return 0;
    char *p = mk_arena_alloc(h->arena, h->cookie_len);
    if (!p)
        return 503;
    mk_str *value = &h->fields.at[h->fields.first[MK_HEADER_COOKIE] - 1].value;
    struct mk_buf out = mk_buf_fixed(p, h->cookie_len);
    mk_buf_add(&out, *value);
    for (const struct mk_h2_cookie_crumb *crumb = h->first_crumb; crumb; crumb = crumb->next) {
        mk_buf_add(&out, crumb_end);
        mk_buf_add(&out, crumb->text);
    }
    *value = mk_buf_str(&out);
    return 0;
}

static int check_head(struct mk_h2_head *h, int bad_host)
{
    if (!mk_is_token(h->method_text))
        return MALFORMED;
    if (!has_required_pseudo_headers(h))
        return MALFORMED;
    if (h->method_text.len > MK_REQUEST_HEAD_METHOD_MAX)
        return 501;
    int status = begin_regular_headers(h);
    if (!status)
        status = join_cookie_crumbs(h);
    if (!status)
        status = bad_host;
    if (!status)
        status = check_target(h);
    if (status || !mk_headers_has(&h->fields, MK_HEADER_EXPECT))
        return status;
    return mk_framing_parse_expect(&h->fields, &h->expects_continue);
}

int mk_h2_head_finish(struct mk_h2_head *h)
{
    if (h->is_trailers || h->result == MALFORMED)
        return h->result;
    int bad_host = parse_authority_or_host(h);
    if (!h->result)
        h->result = check_head(h, bad_host);
    return h->result;
}
