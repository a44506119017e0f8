/* SPDX-License-Identifier: Apache-2.0 */
#include "renewal_info.h"

#include <time.h>

enum { EXPLANATION_MAX = 500 };

/* Reads `digits` digits and, unless it is '\0', the character after them. */
static bool read_number(mk_str *text, size_t digits, char after, int *n)
{
    *n = 0;
    for (size_t i = 0; i < digits; i++) {
        if (i >= text->len || !mk_char_is_digit(text->p[i]))
            return false;
        *n = *n * 10 + (text->p[i] - '0');
    }
    *text = mk_str_skip(*text, digits);
    if (after && (!text->len || (text->p[0] | 0x20) != (after | 0x20)))
        return false;
    *text = mk_str_skip(*text, after ? 1 : 0);
    return true;
}

static void skip_fraction(mk_str *text)
{
    size_t n = 1;
    if (text->len < 2 || text->p[0] != '.' || !mk_char_is_digit(text->p[1]))
        return;
    while (n < text->len && mk_char_is_digit(text->p[n]))
        n++;
    *text = mk_str_skip(*text, n);
}

/* Reads `Z` or `+hh:mm` at the end of the text, in seconds. */
static bool read_zone(mk_str text, int64_t *offset)
{
    int hours, minutes;
    *offset = 0;
    if (text.len == 1)
        return (text.p[0] | 0x20) == 'z';
    bool is_west = text.len && text.p[0] == '-';
    if (!text.len || (text.p[0] != '+' && !is_west))
        return false;
    text = mk_str_skip(text, 1);
    if (!read_number(&text, 2, ':', &hours) || !read_number(&text, 2, '\0', &minutes) || text.len ||
        hours > 23 || minutes > 59)
        return false;
    *offset = (is_west ? -1 : 1) * (hours * 3600 + minutes * 60);
    return true;
}

bool acme_rfc3339_parse(mk_str text, int64_t *seconds)
{
    struct tm t = {0};
    int64_t offset;
    if (!read_number(&text, 4, '-', &t.tm_year) || !read_number(&text, 2, '-', &t.tm_mon) ||
        !read_number(&text, 2, 'T', &t.tm_mday) || !read_number(&text, 2, ':', &t.tm_hour) ||
        !read_number(&text, 2, ':', &t.tm_min) || !read_number(&text, 2, '\0', &t.tm_sec))
        return false;
    skip_fraction(&text);
    if (!read_zone(text, &offset) || t.tm_year < 1970 || t.tm_mon < 1 || t.tm_mon > 12 || t.tm_mday < 1 ||
        t.tm_mday > 31 || t.tm_hour > 23 || t.tm_min > 59 || t.tm_sec > 60)
        return false;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    int day = t.tm_mday;
    *seconds = (int64_t)timegm(&t) - offset;
    return t.tm_mday == day || t.tm_sec == 60; /* timegm() turns February 30 into March */
}

static bool read_date(const json_t *window, const char *key, int64_t *out)
{
    const json_t *value = json_object_get(window, key);
    return json_is_string(value) &&
           acme_rfc3339_parse(mk_str_of(json_string_value(value), json_string_length(value)), out);
}

bool acme_renewal_window_parse(const json_t *response, struct acme_renewal_window *window)
{
    const json_t *w = json_object_get(response, "suggestedWindow");
    *window = (struct acme_renewal_window){
        .explanation = json_string_value(json_object_get(response, "explanationURL"))};
    if (window->explanation && strlen(window->explanation) > EXPLANATION_MAX)
        window->explanation = NULL;
    return read_date(w, "start", &window->start) && read_date(w, "end", &window->end) &&
           window->start < window->end;
}

bool acme_profile_is_offered(const json_t *directory, const char *profile, struct mk_buf *offered)
{
    const json_t *profiles = json_object_get(json_object_get(directory, "meta"), "profiles"), *each;
    const char *name;
    if (json_object_get(profiles, profile))
        return true;
    json_object_foreach((json_t *)(uintptr_t)profiles, name, each)
        mk_buf_addf(offered, "%s%.100s", offered->len ? ", " : "", name);
    return false;
}
