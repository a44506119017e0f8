/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of strings that a schema can require. */
#include <duda/schema.h>

#include "text/calendar.h"

enum { EMAIL_MAX = 254, LOCAL_MAX = 64, LABEL_MAX = 63, HOST_MAX = 253, PORT_MAX = 65535 };

static bool is_alnum(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c);
}

/* ---- Host names ---- */

static bool is_label(mk_str label)
{
    if (!label.len || label.len > LABEL_MAX || label.p[0] == '-' || label.p[label.len - 1] == '-')
        return false;
    for (size_t i = 0; i < label.len; i++)
        if (!is_alnum(label.p[i]) && label.p[i] != '-')
            return false;
    return true;
}

/* Returns whether the text consists of labels of letters, digits and hyphens, as domain names and IPv4
 * addresses do. */
static bool is_host_name(mk_str host)
{
    mk_str rest = host;
    size_t dot;
    if (!host.len || host.len > HOST_MAX)
        return false;
    while ((dot = mk_str_find(rest, '.')) != MK_STR_NONE) {
        if (!is_label(mk_str_first(rest, dot)))
            return false;
        rest = mk_str_skip(rest, dot + 1);
    }
    return is_label(rest);
}

/* ---- Email ---- */

static bool is_email_local_part(mk_str text)
{
    if (!text.len || text.len > LOCAL_MAX || text.p[0] == '.' || text.p[text.len - 1] == '.')
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i];
        if (!is_alnum(c) && (!c || !strchr(".!#$%&'*+/=?^_`{|}~-", c)))
            return false;
        if (c == '.' && text.p[i + 1] == '.')
            return false;
    }
    return true;
}

static bool is_email(mk_str text)
{
    size_t at = mk_str_find(text, '@');
    return text.len <= EMAIL_MAX && at != MK_STR_NONE && is_email_local_part(mk_str_first(text, at)) &&
           is_host_name(mk_str_skip(text, at + 1));
}

/* ---- UUID ---- */

static bool is_uuid(mk_str text)
{
    for (size_t i = 0; i < text.len && text.len == 36; i++) {
        bool is_hyphen = i == 8 || i == 13 || i == 18 || i == 23;
        if (is_hyphen ? text.p[i] != '-' : mk_char_hex(text.p[i]) < 0)
            return false;
    }
    return text.len == 36;
}

/* ---- URL ---- */

/* Returns whether the character may occur in a path, a query or a fragment (RFC 3986). */
static bool is_url_char(char c)
{
    return is_alnum(c) || (c && strchr("-._~!$&'()*+,;=:@/?", c));
}

static bool is_url_rest(mk_str text)
{
    bool has_fragment = false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == '%') {
            if (i + 2 >= text.len || mk_char_hex(text.p[i + 1]) < 0 || mk_char_hex(text.p[i + 2]) < 0)
                return false;
            i += 2;
        } else if (text.p[i] == '#' && !has_fragment) {
            has_fragment = true;
        } else if (!is_url_char(text.p[i])) {
            return false;
        }
    }
    return true;
}

/* Returns whether the text looks like an IPv6 address: hexadecimal digits, colons and dots. */
static bool is_ipv6(mk_str text)
{
    size_t colons = 0;
    for (size_t i = 0; i < text.len; i++) {
        colons += text.p[i] == ':';
        if (text.p[i] != ':' && text.p[i] != '.' && mk_char_hex(text.p[i]) < 0)
            return false;
    }
    return colons >= 2 && text.len <= 45;
}

static bool is_port(mk_str text)
{
    uint64_t port;
    return mk_num_parse(text, &port) && port > 0 && port <= PORT_MAX;
}

static bool is_url_authority(mk_str text)
{
    if (text.len && text.p[0] == '[') {
        size_t end = mk_str_find(text, ']');
        mk_str port = end == MK_STR_NONE ? MK_STR("") : mk_str_skip(text, end + 1);
        return end != MK_STR_NONE && is_ipv6(mk_str_skip(mk_str_first(text, end), 1)) &&
               (!port.len || (port.p[0] == ':' && is_port(mk_str_skip(port, 1))));
    }
    size_t colon = mk_str_find(text, ':');
    return is_host_name(mk_str_first(text, colon == MK_STR_NONE ? text.len : colon)) &&
           (colon == MK_STR_NONE || is_port(mk_str_skip(text, colon + 1)));
}

static bool is_url(mk_str text)
{
    static const mk_str schemes[] = {MK_STR("https://"), MK_STR("http://")};
    for (size_t i = 0; i < MK_LEN(schemes); i++) {
        if (!mk_str_eq_nocase(mk_str_first(text, schemes[i].len), schemes[i]))
            continue;
        mk_str rest = mk_str_skip(text, schemes[i].len);
        size_t end = 0;
        while (end < rest.len && rest.p[end] != '/' && rest.p[end] != '?' && rest.p[end] != '#')
            end++;
        return is_url_authority(mk_str_first(rest, end)) && is_url_rest(mk_str_skip(rest, end));
    }
    return false;
}

/* ---- Decimal numbers ---- */

static size_t skip_digits(mk_str text, size_t at)
{
    while (at < text.len && mk_char_is_digit(text.p[at]))
        at++;
    return at;
}

static bool is_decimal(mk_str text)
{
    size_t begin = text.len && text.p[0] == '-', end = skip_digits(text, begin);
    if (end == begin || (text.p[begin] == '0' && end > begin + 1))
        return false;
    if (end == text.len)
        return true;
    return text.p[end] == '.' && end + 1 < text.len && skip_digits(text, end + 1) == text.len;
}

/* ---- All formats ---- */

static bool is_date(mk_str text)
{
    int64_t days;
    return duda_calendar_parse_date(&text, &days) && !text.len;
}

static bool is_date_time(mk_str text)
{
    int64_t time;
    return duda_timestamp_parse(text, &time);
}

/* A service that was compiled with a later release may use a format that does not exist here. */
bool duda_format_matches(enum duda_schema_format format, mk_str text)
{
    switch (format) {
    case DUDA_FORMAT_NONE:
        return true;
    case DUDA_FORMAT_EMAIL:
        return is_email(text);
    case DUDA_FORMAT_UUID:
        return is_uuid(text);
    case DUDA_FORMAT_DATE_TIME:
        return is_date_time(text);
    case DUDA_FORMAT_DATE:
        return is_date(text);
    case DUDA_FORMAT_URL:
        return is_url(text);
    case DUDA_FORMAT_DECIMAL:
        return is_decimal(text);
    }
    return false;
}
