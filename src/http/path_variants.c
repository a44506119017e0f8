/* SPDX-License-Identifier: Apache-2.0 */
#include "http/path_variants.h"

#include "http/scan.h"

/* ---- Does it vary? ---- */

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ' || c == 0x7f;
}

/* Blanks that programs trim beside those of ASCII, in UTF-8 and as single bytes of Latin-1. */
static const mk_str wide_blanks[] = {
    MK_STR_INIT("\xc2\x85"),     MK_STR_INIT("\xc2\xa0"),     MK_STR_INIT("\xe1\x9a\x80"),
    MK_STR_INIT("\xe2\x80\x80"), MK_STR_INIT("\xe2\x80\x81"), MK_STR_INIT("\xe2\x80\x82"),
    MK_STR_INIT("\xe2\x80\x83"), MK_STR_INIT("\xe2\x80\x84"), MK_STR_INIT("\xe2\x80\x85"),
    MK_STR_INIT("\xe2\x80\x86"), MK_STR_INIT("\xe2\x80\x87"), MK_STR_INIT("\xe2\x80\x88"),
    MK_STR_INIT("\xe2\x80\x89"), MK_STR_INIT("\xe2\x80\x8a"), MK_STR_INIT("\xe2\x80\xa8"),
    MK_STR_INIT("\xe2\x80\xa9"), MK_STR_INIT("\xe2\x80\xaf"), MK_STR_INIT("\xe2\x81\x9f"),
    MK_STR_INIT("\xe3\x80\x80"), MK_STR_INIT("\xef\xbb\xbf"),
};

static bool is_latin_blank(char c)
{
    return (unsigned char)c == 0x85 || (unsigned char)c == 0xa0;
}

static bool is_ascii(char c)
{
    return (unsigned char)c < 0x80;
}

/* How many bytes at the end are a blank; a byte of Latin-1 is none if it may be a part of a character. */
static size_t blank_at_end(mk_str s)
{
    char last = s.len ? s.p[s.len - 1] : 'x';
    if (is_ascii(last))
        return is_blank(last);
    for (size_t i = 0; i < MK_LEN(wide_blanks); i++)
        if (mk_str_ends(s, wide_blanks[i]))
            return wide_blanks[i].len;
    return is_latin_blank(last) && (s.len == 1 || is_ascii(s.p[s.len - 2]));
}

static size_t blank_at_start(mk_str s)
{
    char first = s.len ? s.p[0] : 'x';
    if (is_ascii(first))
        return is_blank(first);
    for (size_t i = 0; i < MK_LEN(wide_blanks); i++)
        if (mk_str_starts(s, wide_blanks[i]))
            return wide_blanks[i].len;
    return is_latin_blank(first);
}

static bool has_tail(mk_str s)
{
    return mk_str_ends(s, MK_STR(".")) || blank_at_end(s);
}

/* The length of an overlong form of an ASCII character at `at`, 0 if there is none; valid UTF-8 has none. */
static size_t overlong_at(mk_str s, size_t at)
{
    unsigned char first = (unsigned char)s.p[at], second = at + 1 < s.len ? (unsigned char)s.p[at + 1] : 0,
                  third = at + 2 < s.len ? (unsigned char)s.p[at + 2] : 0;
    if ((first == 0xc0 || first == 0xc1) && second >> 6 == 2)
        return 2;
    return first == 0xe0 && (second & 0xfe) == 0x80 && third >> 6 == 2 ? 3 : 0;
}

static bool is_escape(mk_str s, size_t at)
{
    return s.len - at >= 3 && s.p[at] == '%' && mk_char_hex(s.p[at + 1]) >= 0 &&
           mk_char_hex(s.p[at + 2]) >= 0;
}

static bool varies_at(mk_str path, size_t i)
{
    char c = path.p[i];
    switch (c) {
    case ';':
    case '\\':
    case '?':
    case '#':
        return true;
    case '/': /* a name begins or ends with something that others drop */
        return has_tail(mk_str_first(path, i)) || blank_at_start(mk_str_skip(path, i + 1));
    case '%':
        return is_escape(path, i);
    default:
        return (unsigned char)c >= 0xc0 && overlong_at(path, i);
    }
}

/* Nearly all paths: of characters that every program takes for themselves, and no dot at the end of a name. */
static bool is_clear(mk_str path)
{
    for (size_t i = 0; i < path.len; i++) {
        if (MK_LIKELY(mk_scan_is(path.p[i], MK_SCAN_CLEAR)))
            continue;
        if (path.p[i] != '.' || i + 1 == path.len || path.p[i + 1] == '/')
            return false;
    }
    return true;
}

bool mk_path_may_vary(mk_str path, bool has_slash)
{
    if (!path.len || path.p[0] != '/') /* of `OPTIONS *` */
        return false;
    if (MK_LIKELY(is_clear(path)))
        return has_slash;
    for (size_t i = 0; i < path.len; i++)
        if (varies_at(path, i))
            return true;
    return has_slash || has_tail(path);
}

/* ---- One reading ---- */

/* How many bytes separate here. */
static size_t separator_at(mk_str rest, unsigned how)
{
    if (rest.p[0] == '/')
        return 1;
    if (!(how & MK_READ_SLASHES))
        return 0;
    if (rest.p[0] == '\\')
        return 1;
    return is_escape(rest, 0) && rest.p[1] == '2' && mk_char_lower(rest.p[2]) == 'f' ? 3 : 0;
}

/* The name at the beginning of *rest, which moves past it and past what separates it from the next one. */
static mk_str cut_name(mk_str *rest, unsigned how, bool *separated)
{
    size_t len = 0, gap = 0;
    while (len < rest->len && !(gap = separator_at(mk_str_skip(*rest, len), how)))
        len++;
    mk_str name = mk_str_first(*rest, len);
    *rest = mk_str_skip(*rest, len + gap);
    *separated = gap > 0;
    return name;
}

/* What is left of a name for programs that cut path parameters and trim. */
static mk_str trim(mk_str name)
{
    size_t n;
    name = mk_str_first(name, mk_str_find(name, ';'));
    while ((n = blank_at_end(name)))
        name.len -= n;
    while ((n = blank_at_start(name)))
        name = mk_str_skip(name, n);
    if (mk_str_eq(name, MK_STR("..")))
        return name;
    while (has_tail(name))
        name.len -= mk_max(blank_at_end(name), 1u);
    return name;
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

static mk_str before_query(mk_str path)
{
    path = mk_str_first(path, mk_str_find(path, '?'));
    return mk_str_first(path, mk_str_find(path, '#'));
}

/* What follows the authority of a path that begins with two slashes. */
static mk_str after_authority(mk_str rest, unsigned how)
{
    size_t gap = rest.len ? separator_at(rest, how) : 0;
    bool separated;
    if (!gap)
        return rest;
    while (rest.len && (gap = separator_at(rest, how)))
        rest = mk_str_skip(rest, gap);
    (void)cut_name(&rest, how, &separated);
    return rest;
}

mk_str mk_path_read(mk_str path, unsigned how, char *room)
{
    size_t len = 1;
    bool separated;
    mk_str rest = mk_str_skip(how & MK_READ_TAILS ? before_query(path) : path, 1);
    if (how & MK_READ_AUTHORITY)
        rest = after_authority(rest, how);
    room[0] = '/';
    while (rest.len) {
        mk_str name = cut_name(&rest, how, &separated);
        if (how & MK_READ_TAILS)
            name = trim(name);
        if (mk_str_eq(name, MK_STR(".."))) {
            len = climb(room, len);
        } else if (name.len && !mk_str_eq(name, MK_STR("."))) {
            memcpy(room + len, name.p, name.len);
            len += name.len;
        }
        if (separated && room[len - 1] != '/')
            room[len++] = '/';
    }
    return mk_str_of(room, len);
}

mk_str mk_path_decode_again(mk_str path, char *room)
{
    size_t len = 0;
    for (size_t i = 0, n; i < path.len; i += n) {
        char c = path.p[i];
        n = overlong_at(path, i);
        if (n) {
            c = (char)((path.p[i + n - 2] & 1) << 6 | (path.p[i + n - 1] & 0x3f));
        } else if (is_escape(path, i)) {
            n = 3;
            c = (char)(mk_char_hex(path.p[i + 1]) << 4 | mk_char_hex(path.p[i + 2]));
        } else {
            n = 1;
        }
        if (c == '\0')
            break;
        room[len++] = c;
    }
    return mk_str_of(room, len);
}

/* ---- All of them ---- */

struct variants {
    mk_str path; /* as it is */
    mk_str *list;
    size_t n;
    struct mk_arena *arena;
    char *room; /* for the next one; NULL: none */
};

static bool is_known(const struct variants *v, mk_str path)
{
    for (size_t i = 0; i < v->n; i++)
        if (mk_str_eq(v->list[i], path))
            return true;
    return mk_str_eq(v->path, path);
}

/* The readings in which a path may differ from what it is. */
static unsigned readings_of(mk_str path)
{
    unsigned how = MK_READ_TAILS; /* a name may end before any separator */
    for (size_t i = 0; i < path.len; i++)
        if (path.p[i] != '/' && separator_at(mk_str_skip(path, i), MK_READ_SLASHES))
            how |= MK_READ_SLASHES;
    mk_str rest = mk_str_skip(path, 1);
    if (rest.len && separator_at(rest, MK_READ_SLASHES))
        how |= MK_READ_AUTHORITY;
    return how;
}

static bool add_readings(struct variants *v, mk_str path)
{
    unsigned ways = readings_of(path);
    for (unsigned how = 0; how <= MK_READ_ALL; how++) {
        if (how & ~ways)
            continue;
        if (!v->room && !(v->room = mk_arena_alloc(v->arena, v->path.len)))
            return false;
        mk_str one = mk_path_read(path, how, v->room);
        if (is_known(v, one))
            continue;
        v->list[v->n++] = one;
        v->room = NULL;
    }
    return true;
}

static bool may_decode(mk_str path)
{
    for (size_t i = 0; i < path.len; i++)
        if (is_escape(path, i) || overlong_at(path, i))
            return true;
    return false;
}

/* Some programs cut path parameters off before they decode, others after that. */
static bool add_in_order(struct variants *v, mk_str path)
{
    char room[MK_PATH_VARIED_MAX];
    return add_readings(v, path) && add_readings(v, mk_path_read(path, MK_READ_TAILS, room));
}

static bool add_decoded(struct variants *v)
{
    char room[MK_PATH_VARIED_MAX], decoded[MK_PATH_VARIED_MAX];
    if (!may_decode(v->path))
        return true;
    mk_str cut = mk_path_read(v->path, MK_READ_TAILS, room);
    return add_in_order(v, mk_path_decode_again(v->path, decoded)) &&
           add_readings(v, mk_path_decode_again(cut, decoded));
}

unsigned mk_path_variants(mk_str path, bool has_slash, struct mk_arena *arena, mk_str *list, size_t *n)
{
    struct variants v = {.path = path, .list = list, .arena = arena};
    bool varies = mk_path_may_vary(path, has_slash);
    *n = 0;
    if (varies && path.len > MK_PATH_VARIED_MAX)
        return 414;
    if (varies && !(add_in_order(&v, path) && add_decoded(&v)))
        return 503;
    *n = v.n;
    return 0;
}
