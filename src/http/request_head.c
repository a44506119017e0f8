/* SPDX-License-Identifier: Apache-2.0 */
/* Single pass from left to right. Given only a prefix of a head, each step returns either its result for the
 * whole head or MORE; the result is therefore independent of fragmentation. */
#include "http/request_head.h"

#include <limits.h>

#include "base/assert.h"
#include "http/method.h"
#include "http/scan.h"

/* Results of a step, which may also return a negated status. */
enum { MORE = 0, DONE = 1 };

static int skip_empty_lines(const char **at, const char *end)
{
    for (unsigned n = 0; *at < end && **at == '\r'; n++) {
        if (n == MK_REQUEST_HEAD_EMPTY_LINES_MAX)
            return -400;
        if (end - *at < 2)
            return MORE;
        if ((*at)[1] != '\n')
            return -400;
        *at += 2;
    }
    return DONE;
}

static int set_method(struct mk_request_head *h, enum mk_method method, mk_str text, const char **at)
{
    h->method = method;
    h->method_text = text;
    *at = text.p + text.len + 1;
    return DONE;
}

static int parse_method(struct mk_request_head *h, const char **at, const char *end)
{
    if (end - *at >= 4 && memcmp(*at, "GET ", 4) == 0)
        return set_method(h, MK_METHOD_GET, mk_str_of(*at, 3), at);
    const char *from = *at, *to = mk_scan_skip(from, end, MK_SCAN_TOKEN);
    size_t len = (size_t)(to - from);
    if (len > MK_REQUEST_HEAD_METHOD_MAX)
        return -501;
    if (to == end)
        return MORE;
    if (*to != ' ' || len == 0)
        return -400;
    mk_str text = mk_str_of(from, len);
    return set_method(h, mk_method_find(text), text, at);
}

static int parse_target(struct mk_request_head *h, const char **at, const char *end, size_t max)
{
    const char *path, *from = *at, *to = mk_scan_target(from, end, &path);
    size_t len = (size_t)(to - from);
    if (len > max)
        return -414;
    if (to == end)
        return MORE;
    if (*to != ' ' || len == 0)
        return -400;
    h->target = mk_str_of(from, len);
    h->path_len = path ? (size_t)(path - from) : 0;
    *at = to + 1;
    return DONE;
}

/* Parses a version with its line end that is not "HTTP/1.1\r\n": another, invalid or incomplete one. In
 * `form`, 'd' stands for a digit. */
static int parse_unusual_version(struct mk_request_head *h, const char **at, const char *end)
{
    static const char form[] = "HTTP/d.d";
    const char *p = *at;
    for (size_t i = 0; i < sizeof form - 1; i++, p++) {
        if (p == end)
            return MORE;
        if (form[i] == 'd' ? !mk_char_is_digit(*p) : *p != form[i])
            return -400;
    }
    if (p[-3] != '1')
        return -505;
    h->minor = (unsigned)(p[-1] - '0');
    if (p < end && *p != '\r')
        return -400;
    if (end - p < 2)
        return MORE;
    if (p[1] != '\n')
        return -400;
    *at = p + 2;
    return DONE;
}

static int parse_version(struct mk_request_head *h, const char **at, const char *end)
{
    if (end - *at < 10 || memcmp(*at, "HTTP/1.1\r\n", 10) != 0)
        return parse_unusual_version(h, at, end);
    h->minor = 1;
    *at += 10;
    return DONE;
}

static int parse_header_name(mk_str *name, enum mk_header_id *id, const char **at, const char *end)
{
    const char *from = *at, *to = mk_scan_find(from, end, ':');
    *name = mk_str_of(from, (size_t)(to - from));
    *id = mk_header_find_id(*name);
    /* Known names are tokens: only unknown names are checked. */
    if (*id == MK_HEADER_OTHER && !mk_is_token(*name))
        return -400;
    if (to == end)
        return MORE;
    if (name->len == 0)
        return -400;
    *at = to + 1;
    return DONE;
}

static int parse_header_value(mk_str *value, const char **at, const char *end)
{
    const char *from = *at, *to = mk_scan_value(from, end);
    if (to < end && *to != '\r')
        return -400;
    if (end - to < 2)
        return MORE;
    if (to[1] != '\n')
        return -400;
    *at = to + 2;
    *value = mk_scan_trim(from, to);
    return DONE;
}

static int parse_header(struct mk_headers *fields, const char **at, const char *end)
{
    enum mk_header_id id;
    struct mk_header_field *field = &fields->at[fields->n];
    int r = parse_header_name(&field->name, &id, at, end);
    if (r == DONE)
        r = parse_header_value(&field->value, at, end);
    if (r != DONE)
        return r;
    field->id = (uint8_t)id;
    fields->n++;
    if (!fields->first[id])
        fields->first[id] = (uint8_t)fields->n;
    return DONE;
}

static int parse_headers(struct mk_headers *fields, const char **at, const char *end, unsigned max)
{
    while (*at < end && **at != '\r') {
        if (fields->n == max)
            return -431;
        int r = parse_header(fields, at, end);
        if (r != DONE)
            return r;
    }
    if (end - *at < 2)
        return MORE;
    if ((*at)[1] != '\n')
        return -400;
    *at += 2;
    return DONE;
}

static int parse_head(struct mk_request_head *h, mk_str in, const struct mk_request_head_limits *limits)
{
    const char *at = in.p, *end = in.p + in.len;
    mk_headers_init(&h->fields, h->fields.at);
    int r = skip_empty_lines(&at, end);
    if (r == DONE)
        r = parse_method(h, &at, end);
    if (r == DONE)
        r = parse_target(h, &at, end, limits->target_max);
    if (r == DONE)
        r = parse_version(h, &at, end);
    if (r == DONE)
        r = parse_headers(&h->fields, &at, end, limits->fields_max);
    if (r != DONE)
        return r;
    h->len = (size_t)(at - in.p);
    return (int)h->len;
}

/* Does the control character at `i` end the head, or make it invalid? */
static bool line_end_decides_head(mk_str in, size_t i)
{
    if (in.p[i] == '\r')
        return i + 1 < in.len && in.p[i + 1] != '\n';
    if (in.p[i] != '\n' || i == 0 || in.p[i - 1] != '\r')
        return true;
    return i >= 3 && in.p[i - 2] == '\n' && in.p[i - 3] == '\r';
}

/* Can the bytes after the first `seen` bytes change the result from MORE? Only then is the head parsed again
 * from its beginning, which happens a bounded number of times, mostly while the head has only a few bytes. */
static bool needs_reparse(mk_str in, size_t seen, const struct mk_request_head_limits *limits)
{
    const size_t method_end = 2 * MK_REQUEST_HEAD_EMPTY_LINES_MAX + MK_REQUEST_HEAD_METHOD_MAX + 1;
    size_t target_end = method_end + mk_min(limits->target_max, INT_MAX) + 1;
    if (seen < method_end || (seen < target_end && in.len >= target_end))
        return true;
    for (size_t i = seen - 1; i < in.len; i++)
        if (!mk_scan_is(in.p[i], MK_SCAN_VALUE) && line_end_decides_head(in, i))
            return true;
    return false;
}

int mk_request_head_parse(struct mk_request_head *h, mk_str in, size_t seen,
                          const struct mk_request_head_limits *limits)
{
    MK_ASSERT(seen <= in.len && limits->fields_max <= MK_HEADERS_MAX);
    size_t max = mk_min(limits->head_max, INT_MAX);
    mk_str part = mk_str_first(in, max);
    if (seen && part.len < max && !needs_reparse(in, seen, limits))
        return MORE;
    int r = part.len ? parse_head(h, part, limits) : MORE;
    return r == MORE && part.len == max ? -431 : r;
}
