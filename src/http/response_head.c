/* SPDX-License-Identifier: Apache-2.0 */
#include "http/response_head.h"

#include "http/scan.h"

enum { STATUS_MIN = 100, STATUS_MAX = 599, CGI_STATUS_MIN = 200 };

struct head_parser {
    struct mk_response_head *head;
    struct mk_response_parser_options request;
    unsigned fields_max;
    uint64_t seen; /* bitmap of enum mk_header_id */
    bool says_close, says_keep_alive;
    size_t n_options;              /* elements of Connection */
    struct mk_header_field beyond; /* slot for headers beyond fields_max */
};

_Static_assert(MK_HEADER_IDS <= 64, "each name has a bit");

static uint64_t header_bit(enum mk_header_id id)
{
    return UINT64_C(1) << id;
}

static bool has_header(const struct head_parser *r, enum mk_header_id id)
{
    return r->seen & header_bit(id);
}

/* ---- The status ---- */

/* Parses "200", optionally followed by a space and any text. */
static bool parse_status_code(mk_str text, unsigned min, unsigned *out)
{
    unsigned status = 0;
    for (size_t i = 0; i < 3; i++) {
        if (i == text.len || !mk_char_is_digit(text.p[i]))
            return false;
        status = status * 10 + (unsigned)(text.p[i] - '0');
    }
    if (status < min || status > STATUS_MAX)
        return false;
    *out = status;
    return text.len == 3 || (text.len > 3 && text.p[3] == ' ');
}

/* Parses "HTTP/1.1 200 OK". The reason phrase may be empty; some servers then also omit the space before
 * it. */
static const char *parse_status_line(struct head_parser *r, mk_str line)
{
    static const size_t version_len = sizeof "HTTP/1.1 " - 1, reason_at = sizeof "HTTP/1.1 200 " - 1;
    if (line.len < reason_at - 1 || !mk_str_starts(line, MK_STR("HTTP/1.")) ||
        line.p[version_len - 1] != ' ' || (line.len >= reason_at && line.p[reason_at - 1] != ' '))
        return "the status line is not HTTP/1.0 or HTTP/1.1";
    char minor = line.p[version_len - 2];
    if (minor != '0' && minor != '1')
        return "the version is neither HTTP/1.0 nor 1.1";
    r->head->minor = (unsigned)(minor - '0');
    if (!parse_status_code(mk_str_skip(line, version_len), STATUS_MIN, &r->head->status))
        return "the status is not a number from 100 to 599";
    r->head->reason = mk_str_skip(line, reason_at);
    return mk_is_header_value(r->head->reason) ? NULL : "the reason phrase has control characters";
}

bool mk_response_head_parse_status(mk_str line, unsigned min, unsigned *status)
{
    mk_str rest = line, version = mk_str_cut(&rest, ' ');
    bool is_http = version.len > 5 && version.len <= 8 && mk_str_starts(version, MK_STR("HTTP/")) &&
                   mk_char_is_digit(version.p[5]);
    return is_http && rest.p && mk_is_header_value(line) && parse_status_code(rest, min, status);
}

/* Parses the status line of a CGI response, as sent by uwsgi servers. */
static const char *parse_cgi_status_line(struct head_parser *r, mk_str line)
{
    if (!mk_response_head_parse_status(line, CGI_STATUS_MIN, &r->head->status))
        return "an invalid status line";
    r->head->has_status = true;
    return NULL;
}

static const char *parse_status_header(struct head_parser *r, mk_str value)
{
    if (r->head->has_status)
        return "a second status";
    r->head->has_status = true;
    return parse_status_code(value, CGI_STATUS_MIN, &r->head->status) ? NULL : "a status outside 200 to 599";
}

/* ---- Fields ---- */

static const char *parse_content_length(struct head_parser *r, mk_str value)
{
    if (has_header(r, MK_HEADER_CONTENT_LENGTH))
        return "a second Content-Length";
    r->head->has_length = true;
    return mk_num_parse(value, &r->head->length) && r->head->length <= INT64_MAX
               ? NULL
               : "a Content-Length that is not a number";
}

static const char *parse_transfer_encoding(const struct head_parser *r, mk_str value)
{
    if (has_header(r, MK_HEADER_TRANSFER_ENCODING) || !mk_str_eq_nocase(value, MK_STR("chunked")))
        return "a Transfer-Encoding other than chunked";
    return NULL;
}

/* The number of elements is limited, because each header is compared with each element. */
static const char *parse_connection(struct head_parser *r, mk_str value)
{
    mk_str element;
    for (size_t i = 0; i < value.len; i++)
        r->n_options += value.p[i] == ',';
    if (++r->n_options > MK_CONNECTION_MAX)
        return "a Connection header with too many names";
    while (mk_header_list_next(&value, &element)) {
        if (mk_str_eq_nocase(element, MK_STR("close")))
            r->says_close = true;
        else if (mk_str_eq_nocase(element, MK_STR("keep-alive")))
            r->says_keep_alive = true;
        else
            r->head->names_fields = true;
    }
    return NULL;
}

static const char *parse_http_header(struct head_parser *r, enum mk_header_id id, mk_str value)
{
    if (id == MK_HEADER_CONTENT_LENGTH)
        return parse_content_length(r, value);
    if (id == MK_HEADER_TRANSFER_ENCODING)
        return parse_transfer_encoding(r, value);
    return id == MK_HEADER_CONNECTION ? parse_connection(r, value) : NULL;
}

/* Is it a header that only this server, and no CGI program, may set? */
static bool is_server_header(unsigned id)
{
    switch (id) {
    case MK_HEADER_CONNECTION:
    case MK_HEADER_KEEP_ALIVE:
    case MK_HEADER_PROXY_CONNECTION:
    case MK_HEADER_TE:
    case MK_HEADER_TRAILER:
    case MK_HEADER_UPGRADE:
    case MK_HEADER_DATE:
    case MK_HEADER_SERVER:
        return true;
    default:
        return false;
    }
}

static const char *parse_location(struct head_parser *r, mk_str value)
{
    if (r->head->location.p)
        return "a second Location";
    r->head->location = value;
    return value.len ? NULL : "an empty Location";
}

static const char *parse_cgi_header(struct head_parser *r, enum mk_header_id id, mk_str value)
{
    switch ((int)id) {
    case MK_HEADER_STATUS:
        return parse_status_header(r, value);
    case MK_HEADER_CONTENT_LENGTH:
        return parse_content_length(r, value);
    case MK_HEADER_TRANSFER_ENCODING:
        return "Transfer-Encoding, which only the server may set";
    case MK_HEADER_LOCATION:
        return parse_location(r, value);
    case MK_HEADER_CONTENT_TYPE:
        return has_header(r, id) ? "a second Content-Type" : NULL;
    case MK_HEADER_CONNECTION:
        return parse_connection(r, value);
    default:
        r->head->n_others += !is_server_header(id);
        return NULL;
    }
}

static inline bool split_header_line(mk_str line, struct mk_header_field *f)
{
    const char *end = line.p + line.len, *colon = mk_scan_find(line.p, end, ':');
    if (colon == end)
        return false;
    f->name = mk_str_of(line.p, (size_t)(colon - line.p));
    f->value = mk_scan_trim(colon + 1, end);
    f->id = (uint8_t)mk_header_find_id(f->name);
    return true;
}

static bool has_valid_header_name(const struct mk_header_field *f)
{
    return f->id != MK_HEADER_OTHER || mk_is_token(f->name); /* known names are tokens */
}

/* Returns the slot for the next header, which becomes part of the set when add_header() counts it. */
static struct mk_header_field *next_header_slot(struct head_parser *r)
{
    const struct mk_headers *fields = &r->head->fields;
    return fields->n < r->fields_max ? &fields->at[fields->n] : &r->beyond;
}

static const char *count_header(struct head_parser *r, const struct mk_header_field *f)
{
    struct mk_headers *fields = &r->head->fields;
    if (MK_UNLIKELY(f == &r->beyond)) {
        r->head->is_too_long = r->fields_max > 0;
        return r->fields_max ? "the head has too many headers" : NULL;
    }
    fields->n++;
    if (!fields->first[f->id])
        fields->first[f->id] = (uint8_t)fields->n;
    return NULL;
}

static inline const char *add_header(struct head_parser *r, const struct mk_header_field *f)
{
    static const uint64_t framing = UINT64_C(1) << MK_HEADER_CONTENT_LENGTH |
                                    UINT64_C(1) << MK_HEADER_TRANSFER_ENCODING |
                                    UINT64_C(1) << MK_HEADER_CONNECTION;
    const char *wrong = NULL;
    if (r->request.cgi)
        wrong = parse_cgi_header(r, (enum mk_header_id)f->id, f->value);
    else if (header_bit((enum mk_header_id)f->id) & framing)
        wrong = parse_http_header(r, (enum mk_header_id)f->id, f->value);
    r->seen |= header_bit((enum mk_header_id)f->id);
    return wrong ? wrong : count_header(r, f);
}

static const char *parse_header_line(struct head_parser *r, mk_str line)
{
    struct mk_header_field *f = next_header_slot(r);
    if (!split_header_line(line, f))
        return "a line without a colon";
    if (!has_valid_header_name(f))
        return "an invalid field name";
    if (!mk_is_header_value(f->value))
        return "a control character";
    return add_header(r, f);
}

/* Fast path for a canonical header line. False: the line is empty or invalid, or ends with LF alone, and
 * needs the full check. */
static inline bool parse_header_fast(mk_str *text, mk_str *line, struct mk_header_field *f)
{
    const char *at = text->p, *end = at + text->len, *colon = mk_scan_find(at, end, ':');
    const char *stop = colon < end ? mk_scan_value(colon + 1, end) : end;
    if (end - stop < 2 || stop[0] != '\r' || stop[1] != '\n')
        return false;
    f->name = mk_str_of(at, (size_t)(colon - at));
    f->id = (uint8_t)mk_header_find_id(f->name);
    if (!has_valid_header_name(f))
        return false;
    f->value = mk_scan_trim(colon + 1, stop);
    *line = mk_str_of(at, (size_t)(stop - at));
    *text = mk_str_of(stop + 2, (size_t)(end - stop) - 2);
    return true;
}

/* ---- Semantics ---- */

/* 1xx, 204 and 304 end with the head, and so do responses to HEAD (RFC 9112, section 6.3). */
static enum mk_response_body_kind body_kind_of(const struct head_parser *r)
{
    const struct mk_response_head *h = r->head;
    if (h->status < 200 || h->status == 204 || h->status == 304 || r->request.head)
        return MK_RESPONSE_BODY_NONE;
    if (has_header(r, MK_HEADER_TRANSFER_ENCODING))
        return MK_RESPONSE_BODY_CHUNKED;
    if (!h->has_length)
        return MK_RESPONSE_BODY_UNTIL_CLOSE;
    return h->length ? MK_RESPONSE_BODY_LENGTH : MK_RESPONSE_BODY_NONE;
}

static const char *check_http_head(struct head_parser *r)
{
    struct mk_response_head *h = r->head;
    bool has_coding = has_header(r, MK_HEADER_TRANSFER_ENCODING);
    if (has_coding && h->has_length)
        return "both Transfer-Encoding and Content-Length";
    if (has_coding && h->minor == 0)
        return "Transfer-Encoding in HTTP/1.0";
    if (h->status == 101 && !(r->request.upgrade && has_header(r, MK_HEADER_UPGRADE)))
        return "101 without a requested Upgrade";
    h->body = body_kind_of(r);
    h->keep_alive =
        !r->says_close && (h->minor > 0 || r->says_keep_alive) && h->body != MK_RESPONSE_BODY_UNTIL_CLOSE;
    return NULL;
}

static const char *check_cgi_head(struct head_parser *r)
{
    struct mk_response_head *h = r->head;
    if (!r->seen && !h->has_status)
        return "no header before the empty line";
    if (!h->has_status)
        h->status = has_header(r, MK_HEADER_LOCATION) ? 302 : 200;
    h->body = body_kind_of(r);
    return NULL;
}

/* ---- Lines ---- */

static size_t find_cgi_head_end(mk_str text, size_t at)
{
    if (at == 0 && (mk_str_starts(text, MK_STR("\n")) || mk_str_starts(text, MK_STR("\r\n"))))
        return text.p[0] == '\n' ? 1 : 2;
    for (;;) {
        size_t next = mk_str_find(mk_str_skip(text, at), '\n');
        if (next == MK_STR_NONE)
            return 0;
        at += next + 1;
        mk_str rest = mk_str_skip(text, at);
        if (mk_str_starts(rest, MK_STR("\n")) || mk_str_starts(rest, MK_STR("\r\n")))
            return at + (rest.p[0] == '\n' ? 1 : 2);
    }
}

size_t mk_response_head_end(mk_str text, size_t seen, struct mk_response_parser_options request)
{
    size_t from = seen > 3 ? seen - 3 : 0;
    if (request.cgi)
        return find_cgi_head_end(text, from);
    for (const char *at = text.p + from, *end = text.p + text.len;
         (at = memchr(at, '\r', (size_t)(end - at))); at++)
        if (end - at >= 4 && memcmp(at, "\r\n\r\n", 4) == 0)
            return (size_t)(at - text.p) + 4;
    return 0;
}

/* Returns the next line without its line end; absent: the line end is missing or invalid. */
static mk_str next_line(mk_str *text, bool cgi)
{
    const char *lf = text->len ? memchr(text->p, '\n', text->len) : NULL;
    bool has_cr = lf && lf > text->p && lf[-1] == '\r';
    if (!lf || (!has_cr && !cgi))
        return MK_STR_NULL;
    mk_str line = mk_str_of(text->p, (size_t)(lf - text->p) - has_cr);
    *text = mk_str_of(lf + 1, (size_t)(text->p + text->len - lf) - 1);
    return line;
}

static const char *parse_first_line(struct head_parser *r, mk_str *text)
{
    bool cgi = r->request.cgi;
    if (cgi && !mk_str_starts(*text, MK_STR("HTTP/")))
        return NULL;
    r->head->where = next_line(text, cgi);
    if (!r->head->where.p)
        return "the status line does not end with CRLF";
    return cgi ? parse_cgi_status_line(r, r->head->where) : parse_status_line(r, r->head->where);
}

/* Parses the head, and leaves the data after its empty line in *text. Returns NULL, or an error text. */
static const char *parse_head(struct head_parser *r, mk_str *text)
{
    struct mk_response_head *h = r->head;
    struct mk_header_field *buf = h->fields.at;
    *h = (struct mk_response_head){0};
    mk_headers_init(&h->fields, buf);
    const char *wrong = parse_first_line(r, text);
    while (!wrong) {
        struct mk_header_field *f = next_header_slot(r);
        if (parse_header_fast(text, &h->where, f)) {
            wrong = add_header(r, f);
            continue;
        }
        h->where = next_line(text, r->request.cgi);
        if (!h->where.p)
            return "a line of the head does not end with CRLF";
        if (h->where.len == 0)
            break;
        wrong = parse_header_line(r, h->where);
    }
    if (wrong)
        return wrong;
    h->where = MK_STR_NULL;
    return r->request.cgi ? check_cgi_head(r) : check_http_head(r);
}

const char *mk_response_head_parse(struct mk_response_head *h, mk_str text, unsigned fields_max,
                                   struct mk_response_parser_options request)
{
    struct head_parser r = {.head = h, .request = request, .fields_max = fields_max};
    const char *wrong = parse_head(&r, &text);
    return !wrong && text.len ? "data after the empty line" : wrong;
}

bool mk_response_head_try_parse(struct mk_response_head *h, mk_str *text, unsigned fields_max,
                                struct mk_response_parser_options request)
{
    struct head_parser r = {.head = h, .request = request, .fields_max = fields_max};
    return !parse_head(&r, text);
}

bool mk_response_head_is_local_redirect(const struct mk_response_head *h)
{
    mk_str to = h->location;
    bool is_path = mk_str_starts(to, MK_STR("/")) && !mk_str_starts(to, MK_STR("//"));
    return is_path && !h->has_status && !h->n_others;
}

bool mk_response_head_next_header(mk_str *lines, struct mk_header_field *f)
{
    for (;;) {
        mk_str line = next_line(lines, true);
        if (!line.len)
            return false;
        bool is_field = !mk_str_starts(line, MK_STR("HTTP/")) && split_header_line(line, f);
        if (is_field && !is_server_header(f->id) && f->id != MK_HEADER_STATUS &&
            f->id != MK_HEADER_CONTENT_LENGTH)
            return true;
    }
}
