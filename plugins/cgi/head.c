/* SPDX-License-Identifier: Apache-2.0 */
#include "head.h"

enum { STATUS_LINE_MAX = 256 };

/* ---- Lines ---- */

size_t cgi_head_end(mk_str text, size_t seen)
{
    size_t at = seen > 2 ? seen - 2 : 0;
    if (at == 0 && (mk_str_starts(text, MK_STR("\n")) || mk_str_starts(text, MK_STR("\r\n"))))
        return text.p[0] == '\n' ? 1 : 2;
    for (; at < text.len; at++) {
        mk_str rest = mk_str_skip(text, at);
        if (rest.p[0] != '\n')
            continue;
        if (mk_str_starts(rest, MK_STR("\n\n")))
            return at + 2;
        if (mk_str_starts(rest, MK_STR("\n\r\n")))
            return at + 3;
    }
    return 0;
}

/* The next line, without its end; false at the empty line, or at the end of the text. */
static bool next_line(mk_str *rest, mk_str *line)
{
    if (!rest->p)
        return false;
    *line = mk_str_cut(rest, '\n');
    if (mk_str_ends(*line, MK_STR("\r")))
        line->len--;
    return line->len > 0;
}

/* ---- A status ---- */

static bool parse_status(mk_str value, unsigned *status)
{
    uint64_t n;
    if (!mk_num_parse(mk_str_first(value, 3), &n) || (value.len > 3 && value.p[3] != ' '))
        return false;
    *status = (unsigned)n;
    return n >= 100 && n <= 599;
}

/* "HTTP/1.1 200 OK", which is no field. */
static bool parse_status_line(mk_str line, unsigned *status)
{
    mk_str version = mk_str_cut(&line, ' ');
    bool is_http = mk_str_starts(version, MK_STR("HTTP/")) && version.len > 5 && version.len <= 8;
    return is_http && mk_char_is_digit(version.p[5]) && line.p && parse_status(line, status);
}

int cgi_head_status_line(mk_str text, unsigned *status)
{
    mk_str begin = MK_STR("HTTP/");
    size_t n = text.len < begin.len ? text.len : begin.len;
    if (!mk_str_eq(mk_str_first(text, n), mk_str_first(begin, n)))
        return -1;
    size_t end = mk_str_find(mk_str_first(text, STATUS_LINE_MAX), '\n');
    if (end == MK_STR_NONE)
        return text.len < STATUS_LINE_MAX ? 0 : -1;
    mk_str line = mk_str_first(text, end);
    if (mk_str_ends(line, MK_STR("\r")))
        line.len--;
    return parse_status_line(line, status) && mk_is_field_value(line) ? 1 : -1;
}

/* ---- Fields ---- */

enum kind { OTHER, STATUS, LOCATION, TYPE, LENGTH, SERVERS, CODING };

static enum kind kind_of(mk_str name)
{
    static const struct {
        mk_str name;
        enum kind kind;
    } known[] = {
        {MK_STR_INIT("Status"), STATUS},
        {MK_STR_INIT("Location"), LOCATION},
        {MK_STR_INIT("Content-Type"), TYPE},
        {MK_STR_INIT("Content-Length"), LENGTH},
        {MK_STR_INIT("Transfer-Encoding"), CODING},
        {MK_STR_INIT("Connection"), SERVERS},
        {MK_STR_INIT("Keep-Alive"), SERVERS},
        {MK_STR_INIT("Proxy-Connection"), SERVERS},
        {MK_STR_INIT("TE"), SERVERS},
        {MK_STR_INIT("Trailer"), SERVERS},
        {MK_STR_INIT("Upgrade"), SERVERS},
        {MK_STR_INIT("Date"), SERVERS},
        {MK_STR_INIT("Server"), SERVERS},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (mk_str_eq_nocase(known[i].name, name))
            return known[i].kind;
    return OTHER;
}

static bool goes_to_client(enum kind kind)
{
    return kind == OTHER || kind == LOCATION || kind == TYPE;
}

static bool split(mk_str line, mk_str *name, mk_str *value)
{
    *value = line;
    *name = mk_str_cut(value, ':');
    *value = mk_str_trim(*value);
    return value->p != NULL;
}

bool cgi_head_next(mk_str *rest, mk_str *name, mk_str *value)
{
    mk_str line;
    while (next_line(rest, &line))
        if (split(line, name, value) && goes_to_client(kind_of(*name)))
            return true;
    return false;
}

static const char *read_length(struct cgi_head *h, mk_str value)
{
    uint64_t n;
    if (h->length >= 0)
        return "a second Content-Length";
    if (!mk_num_parse(value, &n) || n > INT64_MAX)
        return "a Content-Length that is not a number";
    h->length = (int64_t)n;
    return NULL;
}

static const char *read_status(struct cgi_head *h, mk_str value)
{
    if (h->status)
        return "a second status";
    if (!parse_status(value, &h->status) || h->status < 200)
        return "a status that is not in 200 to 599";
    return NULL;
}

static const char *read_location(struct cgi_head *h, mk_str value)
{
    if (h->location.p)
        return "a second Location";
    h->location = value;
    return value.len ? NULL : "a Location that is empty";
}

static const char *read_type(struct cgi_head *h, mk_str value)
{
    if (h->type.p)
        return "a second Content-Type";
    h->type = value;
    return NULL;
}

/* The mistake in the field, or NULL. */
static const char *read_field(struct cgi_head *h, mk_str line)
{
    mk_str name, value;
    if (!split(line, &name, &value))
        return "a line without a colon";
    if (!mk_is_token(name))
        return "an invalid field name";
    if (!mk_is_field_value(value))
        return "a control character";
    switch (kind_of(name)) {
    case STATUS:
        return read_status(h, value);
    case LOCATION:
        return read_location(h, value);
    case TYPE:
        return read_type(h, value);
    case LENGTH:
        return read_length(h, value);
    case CODING:
        return "Transfer-Encoding, which only the server may set";
    case SERVERS:
        return NULL;
    case OTHER:
        h->n_others++;
        return NULL;
    }
    return NULL;
}

/* Some scripts begin with a status line, as nph- scripts do. */
static bool read_status_line(struct cgi_head *h, mk_str *rest)
{
    mk_str after = *rest, line;
    if (!mk_str_starts(*rest, MK_STR("HTTP/")) || !next_line(&after, &line))
        return true;
    h->where = line;
    if (!parse_status_line(line, &h->status) || h->status < 200)
        h->wrong = "an invalid status line";
    *rest = after;
    return !h->wrong;
}

bool cgi_head_parse(struct cgi_head *h, mk_str text)
{
    *h = (struct cgi_head){.length = -1};
    mk_str rest = text, line;
    if (!read_status_line(h, &rest))
        return false;
    h->fields = rest;
    bool any = h->status > 0;
    while (next_line(&rest, &line)) {
        any = true;
        h->where = line;
        h->wrong = read_field(h, line);
        if (h->wrong)
            return false;
    }
    h->where = MK_ABSENT;
    if (!any)
        h->wrong = "nothing but an empty line";
    return any;
}

bool cgi_head_is_local_redirect(const struct cgi_head *h)
{
    bool is_path = mk_str_starts(h->location, MK_STR("/")) && !mk_str_starts(h->location, MK_STR("//"));
    return is_path && !h->status && !h->n_others;
}
