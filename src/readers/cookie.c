/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <monkey/cookie.h>
#include <monkey/sized.h>
#include <monkey/text.h>

/* Does the value consist of cookie-octets (RFC 6265bis, section 4.1.1)? Surrounding quotes are rejected,
 * because parsers disagree about them. */
static bool is_cookie_value(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~' || strchr("\",;\\", s.p[i]))
            return false;
    return true;
}

/* Is the text, a path or domain, free of characters that would end the attribute or the line? */
static bool is_attribute_value(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~' || s.p[i] == ';' || s.p[i] == ',')
            return false;
    return true;
}

static bool starts_nocase(mk_str s, mk_str prefix)
{
    return s.len >= prefix.len && mk_str_eq_nocase(mk_str_first(s, prefix.len), prefix);
}

/* Browsers compare the prefixes case-insensitively. */
static bool satisfies_name_prefix(const struct mk_cookie *c, bool secure, mk_str path)
{
    mk_str name = mk_str_from_c(c->name);
    if (starts_nocase(name, MK_STR("__Host-")))
        return secure && c->domain.len == 0 && mk_str_eq(path, MK_STR("/"));
    return secure || !starts_nocase(name, MK_STR("__Secure-"));
}

static void append_attributes(struct mk_buf *b, const struct mk_cookie *c, bool secure, mk_str path)
{
    static const char *const sites[] = {"Lax", "Strict", "None"};
    mk_buf_addf(b, "; Path=%.*s", MK_STR_ARG(path));
    if (c->domain.len)
        mk_buf_addf(b, "; Domain=%.*s", MK_STR_ARG(c->domain));
    if (c->max_age)
        mk_buf_addf(b, "; Max-Age=%" PRId64, c->max_age < 0 ? 0 : c->max_age);
    if (secure)
        mk_buf_add(b, MK_STR("; Secure"));
    if (!c->script_readable)
        mk_buf_add(b, MK_STR("; HttpOnly"));
    mk_buf_addf(b, "; SameSite=%s", sites[c->same_site]);
}

int mk_cookie_write_sized(struct mk_buf *out, const struct mk_cookie *c, size_t c_size, bool is_tls)
{
    struct mk_cookie full;
    c = mk_sized_in(&full, sizeof full, c, c_size);
    mk_str path = c->path.len ? c->path : MK_STR("/");
    bool secure = is_tls && !c->insecure;
    if (!mk_is_token(mk_str_from_c(c->name)) || !is_cookie_value(c->value) || !is_attribute_value(path) ||
        path.p[0] != '/' || !is_attribute_value(c->domain) || c->same_site > MK_SAME_SITE_NONE)
        return -EINVAL;
    if (!satisfies_name_prefix(c, secure, path) || (c->same_site == MK_SAME_SITE_NONE && !secure))
        return -EINVAL;
    size_t before = out->len;
    mk_buf_addf(out, "%s=%.*s", c->name, MK_STR_ARG(c->value));
    append_attributes(out, c, secure, path);
    if (!out->failed && out->len - before <= MK_COOKIE_MAX)
        return 0;
    out->len = before;
    return -EINVAL;
}

bool mk_cookie_next(mk_str *rest, mk_str *name, mk_str *value)
{
    while (rest->p) {
        mk_str pair = mk_str_trim(mk_str_cut(rest, ';'));
        *name = mk_str_trim(mk_str_cut(&pair, '='));
        if (!pair.p || name->len == 0)
            continue; /* without `=`, the cookie has no name */
        *value = mk_str_trim(pair);
        return true;
    }
    return false;
}

mk_str mk_cookie_find(mk_str field, mk_str expected)
{
    mk_str name, value;
    while (mk_cookie_next(&field, &name, &value))
        if (mk_str_eq(name, expected))
            return value;
    return MK_STR_NULL;
}
