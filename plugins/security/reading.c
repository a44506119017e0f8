/* SPDX-License-Identifier: Apache-2.0 */
#include "reading.h"

static bool is_tail(char c)
{
    return c == '.' || c == ' ';
}

unsigned security_reading_of(mk_str path, bool has_encoded_slash)
{
    unsigned how = has_encoded_slash ? SECURITY_READ_SLASHES : 0;
    char before = '\0';
    for (size_t i = 0; i < path.len; before = path.p[i++]) {
        char c = path.p[i];
        if (c == '\\')
            how |= SECURITY_READ_SLASHES;
        else if (c == ';' || (c == '/' && is_tail(before)))
            how |= SECURITY_READ_TAILS;
    }
    if (is_tail(before) || (how & SECURITY_READ_SLASHES))
        how |= SECURITY_READ_TAILS; /* a name may end before a slash that is none for us */
    return how;
}

/* How many bytes separate here. */
static size_t separator_at(mk_str rest, unsigned how)
{
    if (rest.p[0] == '/')
        return 1;
    if (!(how & SECURITY_READ_SLASHES))
        return 0;
    if (rest.p[0] == '\\')
        return 1;
    bool encoded = rest.len >= 3 && rest.p[0] == '%' && rest.p[1] == '2' && mk_char_lower(rest.p[2]) == 'f';
    return encoded ? 3 : 0;
}

/* The name at the begin of *rest, which moves behind it and what separates it from the next one. */
static mk_str read_name(mk_str *rest, unsigned how, bool *separated)
{
    size_t len = 0, gap = 0;
    while (len < rest->len && !(gap = separator_at(mk_str_of(rest->p + len, rest->len - len), how)))
        len++;
    mk_str name = mk_str_first(*rest, len);
    *rest = mk_str_skip(*rest, len + gap);
    *separated = gap > 0;
    return how & SECURITY_READ_TAILS ? mk_str_first(name, mk_str_find(name, ';')) : name;
}

/* The folder above the one that ends here. */
static size_t climb(const char *room, size_t len)
{
    if (len > 1)
        len--;
    while (room[len - 1] != '/')
        len--;
    return len;
}

static size_t add_name(char *room, size_t len, mk_str name, unsigned how, bool lower)
{
    while ((how & SECURITY_READ_TAILS) && name.len && is_tail(name.p[name.len - 1]))
        name.len--;
    for (size_t i = 0; i < name.len; i++)
        room[len++] = lower ? mk_char_lower(name.p[i]) : name.p[i];
    return len;
}

mk_str security_reading_make(mk_str path, unsigned how, bool lower, char *room)
{
    size_t len = 1;
    bool separated;
    if (path.len == 0 || path.p[0] != '/') /* of `OPTIONS *` */
        return path;
    room[0] = '/';
    for (path = mk_str_skip(path, 1); path.len;) {
        mk_str name = read_name(&path, how, &separated);
        if (mk_str_eq(name, MK_STR("..")))
            len = climb(room, len);
        else if (!mk_str_eq(name, MK_STR(".")))
            len = add_name(room, len, name, how, lower);
        if (separated && room[len - 1] != '/')
            room[len++] = '/';
    }
    return mk_str_of(room, len);
}
