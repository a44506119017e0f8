/* SPDX-License-Identifier: Apache-2.0 */
#include "http/reply_head.h"

#include "http/scan.h"

enum { STATUS_MIN = 100, STATUS_MAX = 599, CGI_STATUS_MIN = 200 };

struct reading {
    struct mk_reply_head *head;
    struct mk_reply_request request;
    unsigned fields_max;
    uint64_t seen; /* a bit for each enum mk_field_id */
    bool says_close, says_keep_alive;
    size_t n_options;       /* of Connection */
    struct mk_field beyond; /* a field that there is no room for */
};

_Static_assert(MK_FIELD_IDS <= 64, "each name has a bit");

static uint64_t bit(enum mk_field_id id)
{
    return UINT64_C(1) << id;
}

static bool has(const struct reading *r, enum mk_field_id id)
{
    return r->seen & bit(id);
}

/* ---- The status ---- */

/* "200", and what follows it behind a space. */
static bool read_number(mk_str text, unsigned min, unsigned *out)
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

/* "HTTP/1.1 200 OK": the reason may be empty, and servers that send none leave out its space as well. */
static const char *read_status_line(struct reading *r, mk_str line)
{
    static const size_t version_len = sizeof "HTTP/1.1 " - 1, reason_at = sizeof "HTTP/1.1 200 " - 1;
    if (line.len < reason_at - 1 || !mk_str_starts(line, MK_STR("HTTP/1.")) ||
        line.p[version_len - 1] != ' ' || (line.len >= reason_at && line.p[reason_at - 1] != ' '))
        return "the status line is not of HTTP/1.0 or 1.1";
    char minor = line.p[version_len - 2];
    if (minor != '0' && minor != '1')
        return "the version is neither HTTP/1.0 nor 1.1";
    r->head->minor = (unsigned)(minor - '0');
    if (!read_number(mk_str_skip(line, version_len), STATUS_MIN, &r->head->status))
        return "the status is not a number from 100 to 599";
    r->head->reason = mk_str_skip(line, reason_at);
    return mk_is_field_value(r->head->reason) ? NULL : "the reason phrase has control characters";
}

bool mk_reply_head_read_status(mk_str line, unsigned min, unsigned *status)
{
    mk_str rest = line, version = mk_str_cut(&rest, ' ');
    bool is_http = version.len > 5 && version.len <= 8 && mk_str_starts(version, MK_STR("HTTP/")) &&
                   mk_char_is_digit(version.p[5]);
    return is_http && rest.p && mk_is_field_value(line) && read_number(rest, min, status);
}

/* Of a program that writes one, as servers of uwsgi do. */
static const char *read_program_status_line(struct reading *r, mk_str line)
{
    if (!mk_reply_head_read_status(line, CGI_STATUS_MIN, &r->head->status))
        return "an invalid status line";
    r->head->has_status = true;
    return NULL;
}

static const char *read_status_field(struct reading *r, mk_str value)
{
    if (r->head->has_status)
        return "a second status";
    r->head->has_status = true;
    return read_number(value, CGI_STATUS_MIN, &r->head->status) ? NULL : "a status that is not in 200 to 599";
}

/* ---- Fields ---- */

static const char *read_length(struct reading *r, mk_str value)
{
    if (has(r, MK_FIELD_CONTENT_LENGTH))
        return "a second Content-Length";
    r->head->has_length = true;
    return mk_num_parse(value, &r->head->length) && r->head->length <= INT64_MAX
               ? NULL
               : "a Content-Length that is not a number";
}

static const char *read_coding(const struct reading *r, mk_str value)
{
    if (has(r, MK_FIELD_TRANSFER_ENCODING) || !mk_str_eq_nocase(value, MK_STR("chunked")))
        return "Transfer-Encoding is not just chunked";
    return NULL;
}

/* Every field is compared with every element. */
static const char *read_connection(struct reading *r, mk_str value)
{
    mk_str element;
    for (size_t i = 0; i < value.len; i++)
        r->n_options += value.p[i] == ',';
    if (++r->n_options > MK_CONNECTION_MAX)
        return "a Connection that names too many fields";
    while (mk_element_next(&value, &element)) {
        if (mk_str_eq_nocase(element, MK_STR("close")))
            r->says_close = true;
        else if (mk_str_eq_nocase(element, MK_STR("keep-alive")))
            r->says_keep_alive = true;
        else
            r->head->names_fields = true;
    }
    return NULL;
}

static const char *read_http_field(struct reading *r, enum mk_field_id id, mk_str value)
{
    if (id == MK_FIELD_CONTENT_LENGTH)
        return read_length(r, value);
    if (id == MK_FIELD_TRANSFER_ENCODING)
        return read_coding(r, value);
    return id == MK_FIELD_CONNECTION ? read_connection(r, value) : NULL;
}

/* Only a server may set it. */
static bool is_of_server(unsigned id)
{
    switch (id) {
    case MK_FIELD_CONNECTION:
    case MK_FIELD_KEEP_ALIVE:
    case MK_FIELD_PROXY_CONNECTION:
    case MK_FIELD_TE:
    case MK_FIELD_TRAILER:
    case MK_FIELD_UPGRADE:
    case MK_FIELD_DATE:
    case MK_FIELD_SERVER:
        return true;
    default:
        return false;
    }
}

static const char *read_location(struct reading *r, mk_str value)
{
    if (r->head->location.p)
        return "a second Location";
    r->head->location = value;
    return value.len ? NULL : "a Location that is empty";
}

static const char *read_cgi_field(struct reading *r, enum mk_field_id id, mk_str value)
{
    switch ((int)id) {
    case MK_FIELD_STATUS:
        return read_status_field(r, value);
    case MK_FIELD_CONTENT_LENGTH:
        return read_length(r, value);
    case MK_FIELD_TRANSFER_ENCODING:
        return "Transfer-Encoding, which only the server may set";
    case MK_FIELD_LOCATION:
        return read_location(r, value);
    case MK_FIELD_CONTENT_TYPE:
        return has(r, id) ? "a second Content-Type" : NULL;
    case MK_FIELD_CONNECTION:
        return read_connection(r, value);
    default:
        r->head->n_others += !is_of_server(id);
        return NULL;
    }
}

static inline bool split_line(mk_str line, struct mk_field *f)
{
    const char *end = line.p + line.len, *colon = mk_scan_find(line.p, end, ':');
    if (colon == end)
        return false;
    f->name = mk_str_of(line.p, (size_t)(colon - line.p));
    f->value = mk_scan_trim(colon + 1, end);
    f->id = (uint8_t)mk_field_find_id(f->name);
    return true;
}

static bool has_valid_name(const struct mk_field *f)
{
    return f->id != MK_FIELD_OTHER || mk_is_token(f->name); /* those that we know are tokens */
}

/* Where the next field goes. It is one as soon as take_field() has counted it. */
static struct mk_field *place_of(struct reading *r)
{
    const struct mk_fields *fields = &r->head->fields;
    return fields->n < r->fields_max ? &fields->at[fields->n] : &r->beyond;
}

static const char *count_field(struct reading *r, const struct mk_field *f)
{
    struct mk_fields *fields = &r->head->fields;
    if (MK_UNLIKELY(f == &r->beyond)) {
        r->head->is_too_long = r->fields_max > 0;
        return r->fields_max ? "the head has too many fields" : NULL;
    }
    fields->n++;
    if (!fields->first[f->id])
        fields->first[f->id] = (uint8_t)fields->n;
    return NULL;
}

static inline const char *take_field(struct reading *r, const struct mk_field *f)
{
    static const uint64_t framing = UINT64_C(1) << MK_FIELD_CONTENT_LENGTH |
                                    UINT64_C(1) << MK_FIELD_TRANSFER_ENCODING |
                                    UINT64_C(1) << MK_FIELD_CONNECTION;
    const char *wrong = NULL;
    if (r->request.cgi)
        wrong = read_cgi_field(r, (enum mk_field_id)f->id, f->value);
    else if (bit((enum mk_field_id)f->id) & framing)
        wrong = read_http_field(r, (enum mk_field_id)f->id, f->value);
    r->seen |= bit((enum mk_field_id)f->id);
    return wrong ? wrong : count_field(r, f);
}

static const char *read_field(struct reading *r, mk_str line)
{
    struct mk_field *f = place_of(r);
    if (!split_line(line, f))
        return "a line without a colon";
    if (!has_valid_name(f))
        return "an invalid field name";
    if (!mk_is_field_value(f->value))
        return "a control character";
    return take_field(r, f);
}

/* A field whose line is as it should be, in one pass. False: the line is the last, or wrong, or none of HTTP,
 * and has to be looked at more closely. */
static inline bool cut_field(mk_str *text, mk_str *line, struct mk_field *f)
{
    const char *at = text->p, *end = at + text->len, *colon = mk_scan_find(at, end, ':');
    const char *stop = colon < end ? mk_scan_value(colon + 1, end) : end;
    if (end - stop < 2 || stop[0] != '\r' || stop[1] != '\n')
        return false;
    f->name = mk_str_of(at, (size_t)(colon - at));
    f->id = (uint8_t)mk_field_find_id(f->name);
    if (!has_valid_name(f))
        return false;
    f->value = mk_scan_trim(colon + 1, stop);
    *line = mk_str_of(at, (size_t)(stop - at));
    *text = mk_str_of(stop + 2, (size_t)(end - stop) - 2);
    return true;
}

/* ---- What it all means ---- */

/* A head of 1xx, 204 or 304 ends the message, and so does each that answers HEAD (RFC 9112, section 6.3). */
static enum mk_reply_body decide_body(const struct reading *r)
{
    const struct mk_reply_head *h = r->head;
    if (h->status < 200 || h->status == 204 || h->status == 304 || r->request.head)
        return MK_REPLY_NONE;
    if (has(r, MK_FIELD_TRANSFER_ENCODING))
        return MK_REPLY_CHUNKED;
    if (!h->has_length)
        return MK_REPLY_UNTIL_CLOSE;
    return h->length ? MK_REPLY_LENGTH : MK_REPLY_NONE;
}

static const char *decide(struct reading *r)
{
    struct mk_reply_head *h = r->head;
    bool has_coding = has(r, MK_FIELD_TRANSFER_ENCODING);
    if (has_coding && h->has_length)
        return "both Transfer-Encoding and Content-Length";
    if (has_coding && h->minor == 0)
        return "Transfer-Encoding in HTTP/1.0";
    if (h->status == 101 && !(r->request.upgrade && has(r, MK_FIELD_UPGRADE)))
        return "101 without a requested Upgrade";
    h->body = decide_body(r);
    h->keep_alive = !r->says_close && (h->minor > 0 || r->says_keep_alive) && h->body != MK_REPLY_UNTIL_CLOSE;
    return NULL;
}

static const char *decide_cgi(struct reading *r)
{
    struct mk_reply_head *h = r->head;
    if (!r->seen && !h->has_status)
        return "nothing but an empty line";
    if (!h->has_status)
        h->status = has(r, MK_FIELD_LOCATION) ? 302 : 200;
    h->body = decide_body(r);
    return NULL;
}

/* ---- Lines ---- */

static size_t find_cgi_end(mk_str text, size_t at)
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

size_t mk_reply_head_end(mk_str text, size_t seen, struct mk_reply_request request)
{
    size_t from = seen > 3 ? seen - 3 : 0;
    if (request.cgi)
        return find_cgi_end(text, from);
    for (const char *at = text.p + from, *end = text.p + text.len;
         (at = memchr(at, '\r', (size_t)(end - at))); at++)
        if (end - at >= 4 && memcmp(at, "\r\n\r\n", 4) == 0)
            return (size_t)(at - text.p) + 4;
    return 0;
}

/* The next line without its end; absent when it does not end as it must. */
static mk_str cut_line(mk_str *text, bool cgi)
{
    const char *lf = text->len ? memchr(text->p, '\n', text->len) : NULL;
    bool has_cr = lf && lf > text->p && lf[-1] == '\r';
    if (!lf || (!has_cr && !cgi))
        return MK_ABSENT;
    mk_str line = mk_str_of(text->p, (size_t)(lf - text->p) - has_cr);
    *text = mk_str_of(lf + 1, (size_t)(text->p + text->len - lf) - 1);
    return line;
}

static const char *read_first_line(struct reading *r, mk_str *text)
{
    bool cgi = r->request.cgi;
    if (cgi && !mk_str_starts(*text, MK_STR("HTTP/")))
        return NULL;
    r->head->where = cut_line(text, cgi);
    if (!r->head->where.p)
        return "the status line does not end with CRLF";
    return cgi ? read_program_status_line(r, r->head->where) : read_status_line(r, r->head->where);
}

/* What is behind the empty line is left in *text. */
static const char *parse(struct reading *r, mk_str *text)
{
    struct mk_reply_head *h = r->head;
    struct mk_field *room = h->fields.at;
    *h = (struct mk_reply_head){0};
    mk_fields_init(&h->fields, room);
    const char *wrong = read_first_line(r, text);
    while (!wrong) {
        struct mk_field *f = place_of(r);
        if (cut_field(text, &h->where, f)) {
            wrong = take_field(r, f);
            continue;
        }
        h->where = cut_line(text, r->request.cgi);
        if (!h->where.p)
            return "a line of the head does not end with CRLF";
        if (h->where.len == 0)
            break;
        wrong = read_field(r, h->where);
    }
    if (wrong)
        return wrong;
    h->where = MK_ABSENT;
    return r->request.cgi ? decide_cgi(r) : decide(r);
}

const char *mk_reply_head_parse(struct mk_reply_head *h, mk_str text, unsigned fields_max,
                                struct mk_reply_request request)
{
    struct reading r = {.head = h, .request = request, .fields_max = fields_max};
    const char *wrong = parse(&r, &text);
    return !wrong && text.len ? "there is more after the empty line" : wrong;
}

bool mk_reply_head_try(struct mk_reply_head *h, mk_str *text, unsigned fields_max,
                       struct mk_reply_request request)
{
    struct reading r = {.head = h, .request = request, .fields_max = fields_max};
    return !parse(&r, text);
}

bool mk_reply_head_is_local_redirect(const struct mk_reply_head *h)
{
    mk_str to = h->location;
    bool is_path = mk_str_starts(to, MK_STR("/")) && !mk_str_starts(to, MK_STR("//"));
    return is_path && !h->has_status && !h->n_others;
}

bool mk_reply_head_next(mk_str *lines, struct mk_field *f)
{
    for (;;) {
        mk_str line = cut_line(lines, true);
        if (!line.len)
            return false;
        bool is_field = !mk_str_starts(line, MK_STR("HTTP/")) && split_line(line, f);
        if (is_field && !is_of_server(f->id) && f->id != MK_FIELD_STATUS && f->id != MK_FIELD_CONTENT_LENGTH)
            return true;
    }
}
