/* SPDX-License-Identifier: Apache-2.0 */
#include "url.h"

#include <monkey/addr.h>
#include <monkey/text.h>
#include <string.h>

/* ---- The host ---- */

static bool is_label_char(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) || c == '-' || c == '_';
}

static bool is_host_name(mk_str host)
{
    bool is_empty_label = true;
    for (size_t i = 0; i < host.len; i++) {
        if (host.p[i] != '.' && !is_label_char(host.p[i]))
            return false;
        if (host.p[i] == '.' && is_empty_label)
            return false;
        is_empty_label = host.p[i] == '.';
    }
    return !is_empty_label;
}

/* Would the resolver read the host as a number, such as 2130706433, 0x7f.1 or 127.1? */
static bool is_numeric(mk_str host)
{
    size_t dot = mk_str_find_last(host, '.');
    mk_str last = dot == MK_STR_NONE ? host : mk_str_skip(host, dot + 1);
    size_t digits = 0;
    while (digits < last.len && mk_char_is_digit(last.p[digits]))
        digits++;
    return digits == last.len || (last.len > 1 && last.p[0] == '0' && (last.p[1] == 'x' || last.p[1] == 'X'));
}

static bool parse_address(mk_str host, struct http_url *out)
{
    struct mk_addr addr;
    struct mk_buf text = mk_buf_fixed(out->host, sizeof out->host - 1);
    if (!mk_addr_parse(host, &addr) || addr.port || addr.is_unix)
        return false;
    mk_addr_format(&addr, &text);
    out->host[text.len] = '\0';
    return !text.failed;
}

static const char *parse_host(mk_str host, struct http_url *out)
{
    if (host.len && host.p[0] == '[')
        return host.p[host.len - 1] == ']' && parse_address(host, out) ? NULL : "its address is invalid";
    if (mk_str_ends(host, MK_STR("."))) /* the DNS root, which does not change the host */
        host.len--;
    if (!is_host_name(host) || host.len > HTTP_URL_HOST_MAX)
        return "its host is missing or invalid";
    if (is_numeric(host))
        return parse_address(host, out) ? NULL : "its address is invalid";
    for (size_t i = 0; i < host.len; i++)
        out->host[i] = mk_char_lower(host.p[i]);
    out->host[host.len] = '\0';
    return NULL;
}

static uint16_t default_port(const struct http_url *url)
{
    return url->is_https ? 443 : 80;
}

static const char *parse_port(mk_str text, struct http_url *out)
{
    uint64_t port = default_port(out);
    if (text.len && (!mk_num_parse(text, &port) || port < 1 || port > UINT16_MAX))
        return "its port is invalid";
    out->port = (uint16_t)port;
    return NULL;
}

static void write_authority(struct http_url *url)
{
    struct mk_buf text = mk_buf_fixed(url->authority, sizeof url->authority - 1);
    mk_buf_addf(&text, strchr(url->host, ':') ? "[%s]" : "%s", url->host);
    if (url->port != default_port(url))
        mk_buf_addf(&text, ":%u", url->port);
    url->authority[text.len] = '\0';
}

static const char *parse_authority(mk_str text, struct http_url *out)
{
    size_t bracket = mk_str_find(text, ']');
    if (mk_str_find(text, '@') != MK_STR_NONE)
        return "it contains a user name";
    size_t from = bracket == MK_STR_NONE ? 0 : bracket, colon = mk_str_find(mk_str_skip(text, from), ':');
    mk_str host = colon == MK_STR_NONE ? text : mk_str_first(text, from + colon);
    mk_str port = colon == MK_STR_NONE ? MK_STR_NULL : mk_str_skip(text, from + colon + 1);
    const char *problem = parse_host(host, out);
    problem = problem ? problem : parse_port(port, out);
    if (!problem)
        write_authority(out);
    return problem;
}

/* ---- The URL ---- */

/* Returns the number of bytes before the first of these characters. */
static size_t span_until(mk_str text, const char *chars)
{
    size_t n = 0;
    while (n < text.len && !strchr(chars, text.p[n]))
        n++;
    return n;
}

static bool is_visible_ascii(mk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] <= ' ' || text.p[i] > '~')
            return false;
    return true;
}

/* Removes the scheme and "://" from the text. Returns false if the scheme is another one. */
static bool cut_scheme(mk_str *text, bool *is_https)
{
    static const mk_str http = MK_STR_INIT("http://"), https = MK_STR_INIT("https://");
    *is_https = mk_str_eq_nocase(mk_str_first(*text, https.len), https);
    if (!*is_https && !mk_str_eq_nocase(mk_str_first(*text, http.len), http))
        return false;
    *text = mk_str_skip(*text, *is_https ? https.len : http.len);
    return true;
}

const char *http_url_parse(mk_str text, struct http_url *out)
{
    if (text.len > HTTP_URL_MAX)
        return "it is too long";
    if (!is_visible_ascii(text))
        return "it contains characters that must be escaped";
    if (!cut_scheme(&text, &out->is_https))
        return "it does not begin with http:// or https://";
    mk_str authority = mk_str_first(text, span_until(text, "/?#"));
    const char *problem = parse_authority(authority, out);
    out->target = mk_str_skip(text, authority.len);
    out->target = mk_str_first(out->target, span_until(out->target, "#"));
    out->path = mk_str_first(out->target, span_until(out->target, "?"));
    return problem;
}

static void add_scheme(bool is_https, struct mk_buf *out)
{
    mk_buf_add(out, is_https ? MK_STR("https://") : MK_STR("http://"));
}

static void add_origin(const struct http_url *url, struct mk_buf *out)
{
    add_scheme(url->is_https, out);
    mk_buf_add(out, mk_str_from_c(url->authority));
}

void http_url_write(const struct http_url *url, struct mk_buf *out)
{
    add_origin(url, out);
    if (!url->path.len)
        mk_buf_add_char(out, '/');
    mk_buf_add(out, url->target);
}

bool http_url_has_same_origin(const struct http_url *a, const struct http_url *b)
{
    return a->is_https == b->is_https && a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* ---- References ---- */

/* Appends the text. Bytes that are not visible ASCII become %XX. */
static void add_escaped(struct mk_buf *out, mk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] > ' ' && text.p[i] <= '~')
            mk_buf_add_char(out, text.p[i]);
        else
            mk_buf_addf(out, "%%%02X", (unsigned char)text.p[i]);
}

/* Removes the last segment of the path that begins at `from`, and its slash. */
static void remove_segment(struct mk_buf *out, size_t from)
{
    while (out->len > from && out->p[out->len - 1] != '/')
        out->len--;
    if (out->len > from)
        out->len--;
}

static bool is_dot(mk_str segment)
{
    return mk_str_eq(segment, MK_STR(".")) || mk_str_eq_nocase(segment, MK_STR("%2e"));
}

static bool is_dot_dot(mk_str segment)
{
    return mk_str_eq(segment, MK_STR("..")) || mk_str_eq_nocase(segment, MK_STR(".%2e")) ||
           mk_str_eq_nocase(segment, MK_STR("%2e.")) || mk_str_eq_nocase(segment, MK_STR("%2e%2e"));
}

/* Appends an absolute path to `out`, whose path begins at `from`, and removes its segments "." and "..". */
static void add_path(struct mk_buf *out, size_t from, mk_str path)
{
    while (path.len) {
        path = mk_str_skip(path, 1); /* the slash */
        mk_str segment = mk_str_first(path, span_until(path, "/"));
        path = mk_str_skip(path, segment.len);
        bool is_parent = is_dot_dot(segment);
        if (is_parent)
            remove_segment(out, from);
        if (!is_parent && !is_dot(segment)) {
            mk_buf_add_char(out, '/');
            add_escaped(out, segment);
        } else if (!path.len) {
            mk_buf_add_char(out, '/');
        }
    }
}

/* Does the reference begin with a scheme? */
static bool has_scheme(mk_str reference)
{
    size_t n = span_until(reference, ":/?#");
    return n && n < reference.len && reference.p[n] == ':';
}

static void add_relative(const struct http_url *base, mk_str path, struct mk_buf *out)
{
    size_t from = out->len, slash = mk_str_find_last(base->path, '/');
    struct mk_buf merged = mk_buf_growing(2 * HTTP_URL_MAX);
    mk_buf_add(&merged, slash == MK_STR_NONE ? MK_STR("/") : mk_str_first(base->path, slash + 1));
    mk_buf_add(&merged, path);
    out->failed |= merged.failed;
    add_path(out, from, mk_buf_str(&merged));
    mk_buf_free(&merged);
}

/* Resolves a reference without a scheme, such as "//host/path", "/path", "path" or "?query", and appends the
 * result. */
static void add_reference(const struct http_url *base, mk_str reference, struct mk_buf *out)
{
    bool has_authority = mk_str_starts(reference, MK_STR("//"));
    if (has_authority) {
        mk_str rest = mk_str_skip(reference, 2), authority = mk_str_first(rest, span_until(rest, "/?"));
        add_scheme(base->is_https, out);
        mk_buf_add(out, authority);
        reference = mk_str_skip(rest, authority.len);
    } else {
        add_origin(base, out);
        if (!reference.len || reference.p[0] == '?')
            add_path(out, out->len, base->path);
    }
    mk_str path = mk_str_first(reference, span_until(reference, "?")),
           query = mk_str_skip(reference, path.len);
    if (path.len && path.p[0] == '/')
        add_path(out, out->len, path);
    else if (path.len)
        add_relative(base, path, out);
    if (!reference.len && !has_authority)
        query = mk_str_skip(base->target, base->path.len);
    add_escaped(out, query);
}

const char *http_url_resolve(const struct http_url *base, mk_str reference, struct mk_buf *out)
{
    struct http_url absolute = *base;
    reference = mk_str_trim(reference);
    reference = mk_str_first(reference, span_until(reference, "#"));
    for (size_t i = 0; i < reference.len; i++)
        if ((unsigned char)reference.p[i] < ' ' || reference.p[i] == 0x7f)
            return "it contains a control character";
    if (has_scheme(reference)) {
        if (!cut_scheme(&reference, &absolute.is_https))
            return "it does not begin with http:// or https://";
        reference.p -= 2; /* "//host/path" */
        reference.len += 2;
    }
    add_reference(&absolute, reference, out);
    return out->failed || out->len > HTTP_URL_MAX ? "it is too long" : NULL;
}
