/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/cgi.h>
#include <monkey/sized.h>

#include "http/response_head.h"

enum { STATUS_LINE_MAX = 256, STATUS_MIN = 100 };

static const struct mk_response_parser_options cgi = {.cgi = true};

size_t mk_cgi_head_end(mk_str text, size_t seen)
{
    return mk_response_head_end(text, seen, cgi);
}

/* Stores no header lines, so their number is unlimited. */
static bool parse_head(struct mk_cgi_head *h, mk_str text)
{
    struct mk_response_head r = {.fields.at = NULL};
    const char *problem = mk_response_head_parse(&r, text, 0, cgi);
    *h = (struct mk_cgi_head){.status = r.status,
                              .length = r.has_length ? (int64_t)r.length : MK_LENGTH_UNKNOWN,
                              .location = r.location,
                              .is_local_redirect = mk_response_head_is_local_redirect(&r),
                              .error = problem,
                              .error_line = r.where};
    return !problem;
}

bool mk_cgi_head_read_sized(struct mk_cgi_head *h, size_t h_size, mk_str text)
{
    struct mk_cgi_head full = {0};
    bool result = parse_head(&full, text);
    mk_sized_out(h, h_size, &full, sizeof full);
    return result;
}

bool mk_cgi_head_next(mk_str *rest, mk_str *name, mk_str *value)
{
    struct mk_header_field field;
    if (!mk_response_head_next_header(rest, &field))
        return false;
    *name = field.name;
    *value = field.value;
    return true;
}

int mk_cgi_head_status_line(mk_str text, unsigned *status)
{
    mk_str begin = MK_STR("HTTP/");
    if (!mk_str_starts(begin, mk_str_first(text, begin.len)) && !mk_str_starts(text, begin))
        return -1;
    size_t end = mk_str_find(mk_str_first(text, STATUS_LINE_MAX), '\n');
    if (end == MK_STR_NONE)
        return text.len < STATUS_LINE_MAX ? 0 : -1;
    mk_str line = mk_str_first(text, end);
    line.len -= mk_str_ends(line, MK_STR("\r"));
    return mk_response_head_parse_status(line, STATUS_MIN, status) ? 1 : -1;
}
