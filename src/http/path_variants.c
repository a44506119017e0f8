/* SPDX-License-Identifier: Apache-2.0 */
#include "http/path_variants.h"

#include <monkey/text.h>

#include "base/buf.h"
#include "http/scan.h"

/* ---- Detecting variants ---- */

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ' || c == 0x7f;
}

/* UTF-8 characters that programs trim in addition to ASCII white space. */
static const mk_str wide_blanks[] = {
    MK_STR_INIT("\xc2\x85"),     MK_STR_INIT("\xc2\xa0"),     MK_STR_INIT("\xe1\x9a\x80"),
    MK_STR_INIT("\xe2\x80\x80"), MK_STR_INIT("\xe2\x80\x81"), MK_STR_INIT("\xe2\x80\x82"),
    MK_STR_INIT("\xe2\x80\x83"), MK_STR_INIT("\xe2\x80\x84"), MK_STR_INIT("\xe2\x80\x85"),
    MK_STR_INIT("\xe2\x80\x86"), MK_STR_INIT("\xe2\x80\x87"), MK_STR_INIT("\xe2\x80\x88"),
    MK_STR_INIT("\xe2\x80\x89"), MK_STR_INIT("\xe2\x80\x8a"), MK_STR_INIT("\xe2\x80\xa8"),
    MK_STR_INIT("\xe2\x80\xa9"), MK_STR_INIT("\xe2\x80\xaf"), MK_STR_INIT("\xe2\x81\x9f"),
    MK_STR_INIT("\xe3\x80\x80"), MK_STR_INIT("\xef\xbb\xbf"),
};

static bool is_latin1_blank(char c)
{
    return (unsigned char)c == 0x85 || (unsigned char)c == 0xa0;
}

static bool is_ascii(char c)
{
    return (unsigned char)c < 0x80;
}

/* Returns the length of the white-space character at the end of the text; 0: none. A Latin-1 byte that may be
 * part of a UTF-8 character does not count. */
static size_t trailing_blank_len(mk_str s)
{
    char last = s.len ? s.p[s.len - 1] : 'x';
    if (is_ascii(last))
        return is_blank(last);
    for (size_t i = 0; i < MK_LEN(wide_blanks); i++)
        if (mk_str_ends(s, wide_blanks[i]))
            return wide_blanks[i].len;
    return is_latin1_blank(last) && (s.len == 1 || is_ascii(s.p[s.len - 2]));
}

static size_t leading_blank_len(mk_str s)
{
    char first = s.len ? s.p[0] : 'x';
    if (is_ascii(first))
        return is_blank(first);
    for (size_t i = 0; i < MK_LEN(wide_blanks); i++)
        if (mk_str_starts(s, wide_blanks[i]))
            return wide_blanks[i].len;
    return is_latin1_blank(first);
}

static bool has_trimmable_end(mk_str s)
{
    return mk_str_ends(s, MK_STR(".")) || trailing_blank_len(s);
}

/* Returns the length of an overlong ASCII character that begins with this byte; 0: none. Decoders of the
 * original UTF-8 (RFC 2279) accept up to six bytes. */
static size_t overlong_len(unsigned char first)
{
    switch (first) {
    case 0xc0:
    case 0xc1:
        return 2;
    case 0xe0:
        return 3;
    case 0xf0:
        return 4;
    case 0xf8:
        return 5;
    case 0xfc:
        return 6;
    default:
        return 0;
    }
}

/* Returns the length of an overlong ASCII character at `at`; 0: none. Valid UTF-8 contains none. */
static size_t overlong_char_len_at(mk_str s, size_t at)
{
    size_t len = overlong_len((unsigned char)s.p[at]);
    if (!len || s.len - at < len || (unsigned char)s.p[at + len - 1] >> 6 != 2)
        return 0;
    for (size_t i = 1; i + 1 < len; i++) { /* the second to last byte holds bit 6 of the character */
        unsigned char bits = i + 2 == len ? 0xfe : 0xff;
        if (((unsigned char)s.p[at + i] & bits) != 0x80)
            return 0;
    }
    return len;
}

static char decode_overlong_char(mk_str s, size_t at, size_t len)
{
    return (char)((s.p[at + len - 2] & 1) << 6 | (s.p[at + len - 1] & 0x3f));
}

static bool is_escape(mk_str s, size_t at)
{
    return s.len - at >= 3 && s.p[at] == '%' && mk_char_hex(s.p[at + 1]) >= 0 &&
           mk_char_hex(s.p[at + 2]) >= 0;
}

/* Decodes "%XX", or "%u00XX" as in JavaScript's unescape(). Returns the length of the escape; 0: none. */
static size_t decode_escape(mk_str s, size_t at, char *c)
{
    bool is_wide = s.len - at >= 6 && s.p[at] == '%' && mk_char_lower(s.p[at + 1]) == 'u' &&
                   s.p[at + 2] == '0' && s.p[at + 3] == '0' && mk_char_hex(s.p[at + 4]) >= 0 &&
                   mk_char_hex(s.p[at + 5]) >= 0;
    if (!is_wide && !is_escape(s, at))
        return 0;
    size_t len = is_wide ? 6 : 3;
    *c = (char)(mk_char_hex(s.p[at + len - 2]) << 4 | mk_char_hex(s.p[at + len - 1]));
    return len;
}

/* Is it a tab or a line-end character? URL parsers remove these wherever they occur. */
static bool is_char_dropped_by_parsers(char c)
{
    return c == '\t' || c == '\n' || c == '\r';
}

/* Is it a segment such as "(S(x))", which ASP.NET removes? It holds the session ID of a client without
 * cookies. */
static bool is_aspnet_session(mk_str name)
{
    return name.len > 4 && name.p[0] == '(' && mk_char_is_alpha(name.p[1]) && name.p[2] == '(' &&
           mk_str_ends(name, MK_STR("))"));
}

static bool starts_with_session(mk_str rest)
{
    return is_aspnet_session(mk_str_first(rest, mk_str_find(rest, '/')));
}

static bool may_vary_at(mk_str path, size_t i)
{
    char c = path.p[i], decoded;
    switch (c) {
    case ';':
    case '\\':
    case '?':
    case '#':
    case '\t':
    case '\n':
    case '\r':
        return true;
    case ':':
        return i + 1 < path.len && path.p[i + 1] == '$';
    case '/': /* may programs trim the end of the name before it, or the start of the name after it? */
        return has_trimmable_end(mk_str_first(path, i)) || leading_blank_len(mk_str_skip(path, i + 1)) ||
               (i + 1 < path.len && path.p[i + 1] == '(' && starts_with_session(mk_str_skip(path, i + 1)));
    case '%':
        return decode_escape(path, i, &decoded) > 0;
    default:
        return (unsigned char)c >= 0xc0 && overlong_char_len_at(path, i);
    }
}

static bool may_path_vary(mk_str path)
{
    for (size_t i = 0; i < path.len; i++)
        if (may_vary_at(path, i))
            return true;
    return has_trimmable_end(path);
}

/* ---- Scripts ---- */

/* Returns the length of the separator at the beginning of the text; 0: none. */
static size_t separator_len_at(mk_str rest, unsigned how)
{
    if (rest.p[0] == '/')
        return 1;
    if (!(how & MK_PATH_READING_SLASHES))
        return 0;
    if (rest.p[0] == '\\')
        return 1;
    return is_escape(rest, 0) && rest.p[1] == '2' && mk_char_lower(rest.p[2]) == 'f' ? 3 : 0;
}

/* Returns the length of a PHP extension (case-insensitive) at the beginning of the text; 0: none. */
static size_t php_extension_len(mk_str rest)
{
    if (mk_str_eq_nocase(mk_str_first(rest, 4), MK_STR(".php")))
        return rest.len > 4 && mk_char_is_digit(rest.p[4]) && (rest.len == 5 || rest.p[5] == '/') ? 5 : 4;
    if (mk_str_eq_nocase(mk_str_first(rest, 6), MK_STR(".phtml")))
        return 6;
    return mk_str_eq_nocase(mk_str_first(rest, 5), MK_STR(".phar")) ? 5 : 0;
}

/* Returns the length of a script extension at the beginning of the text; 0: none. */
static size_t match_script_extension(mk_str rest, mk_str ending)
{
    for (size_t i = 0; i < ending.len; i++) {
        bool is_more = i < rest.len && !separator_len_at(mk_str_skip(rest, i), MK_PATH_READING_SLASHES);
        if (ending.p[i] == '*') {
            while (i < rest.len && !separator_len_at(mk_str_skip(rest, i), MK_PATH_READING_SLASHES))
                i++;
            return i;
        }
        if (!is_more || (ending.p[i] != '?' && mk_char_lower(rest.p[i]) != mk_char_lower(ending.p[i])))
            return 0;
    }
    return ending.len;
}

static size_t longest_script_extension(mk_str rest, const struct mk_path_scripts *scripts)
{
    size_t longest = 0;
    for (size_t i = 0; scripts && i < scripts->n; i++)
        longest = mk_max(longest, match_script_extension(rest, scripts->endings[i]));
    return longest;
}

/* May the rest of the path follow a script name directly, as in "/index.phpadmin"? Some frameworks only test
 * whether a path starts with the name of their script. A second dot, as in "/index.php.bak", belongs to the
 * file name. */
static bool may_follow_script_name(mk_str rest)
{
    return rest.p[0] != '.' && rest.p[0] != ';';
}

/* Returns the offset at which the script name with the extension at `dot` ends; 0: it is not a
 * script name, or nothing but a slash follows. */
static size_t script_name_end(mk_str path, size_t dot, const struct mk_path_scripts *scripts)
{
    mk_str name = mk_str_skip(path, dot);
    size_t php = php_extension_len(name), len = mk_max(php, longest_script_extension(name, scripts));
    mk_str rest = mk_str_skip(name, len);
    if (!len || !rest.len || mk_str_eq(rest, MK_STR("/")))
        return 0;
    return separator_len_at(rest, MK_PATH_READING_SLASHES) ||
                   (php == 4 && len == 4 && may_follow_script_name(rest))
               ? dot + len
               : 0;
}

/* Like script_name_end(), but for scripts->name, the host's own script at the beginning of the path. */
static size_t host_script_name_end(mk_str path, const struct mk_path_scripts *scripts)
{
    mk_str name = scripts ? scripts->name : MK_STR("");
    mk_str rest = mk_str_skip(path, 1 + name.len);
    bool is = name.len && mk_str_starts(mk_str_skip(path, 1), name) && rest.len > 1 && rest.p[0] == '/';
    return is ? 1 + name.len : 0;
}

bool mk_path_has_script(mk_str path, const struct mk_path_scripts *scripts)
{
    if (host_script_name_end(path, scripts))
        return true;
    for (size_t i = 0; i < path.len; i++)
        if (path.p[i] == '.' && script_name_end(path, i, scripts))
            return true;
    return false;
}

/* Can a script extension have this character after its dot? */
static inline bool may_begin_script_extension(char c, const struct mk_path_scripts *scripts)
{
    return (c | 0x20) == 'p' || (scripts && scripts->n);
}

/* Does the path consist of unambiguous characters, without a dot at the end of a name and without a script?
 * Nearly all paths do. */
static bool is_plain_path(mk_str path, const struct mk_path_scripts *scripts)
{
    size_t i;
    if (MK_UNLIKELY(scripts && scripts->name.len))
        return false;
    if (!mk_scan_is_clear(path, &i))
        for (i = 0; i < path.len && mk_scan_is(path.p[i], MK_SCAN_CLEAR); i++)
            continue;
    for (; i < path.len; i++) {
        if (MK_LIKELY(mk_scan_is(path.p[i], MK_SCAN_CLEAR)))
            continue;
        if (path.p[i] != '.' || i + 1 == path.len || path.p[i + 1] == '/')
            return false;
        if (MK_UNLIKELY(may_begin_script_extension(path.p[i + 1], scripts)) &&
            script_name_end(path, i, scripts))
            return false;
    }
    return true;
}

bool mk_path_may_vary(mk_str path, bool has_slash, const struct mk_path_scripts *scripts)
{
    if (!path.len || path.p[0] != '/') /* the target of `OPTIONS *` */
        return false;
    if (has_slash)
        return true;
    return !MK_LIKELY(is_plain_path(path, scripts)) &&
           (may_path_vary(path) || mk_path_has_script(path, scripts));
}

/* ---- Interpreting a path in one way ---- */

/* Returns the name at the beginning of *rest, and skips the name and the separator after it. */
static mk_str next_segment(mk_str *rest, unsigned how, bool *separated)
{
    size_t len = 0, gap = 0;
    while (len < rest->len && !(gap = separator_len_at(mk_str_skip(*rest, len), how)))
        len++;
    mk_str name = mk_str_first(*rest, len);
    *rest = mk_str_skip(*rest, len + gap);
    *separated = gap > 0;
    return name;
}

/* Windows opens "x::$DATA" and "x:$I30:$INDEX_ALLOCATION" as "x". */
static mk_str strip_ntfs_stream(mk_str name)
{
    for (size_t i = 0; i + 1 < name.len; i++)
        if (name.p[i] == ':' && name.p[i + 1] == '$')
            return mk_str_first(name, mk_str_find(name, ':'));
    return name;
}

static mk_str trim_blanks(mk_str name)
{
    size_t n;
    while ((n = trailing_blank_len(name)))
        name.len -= n;
    while ((n = leading_blank_len(name)))
        name = mk_str_skip(name, n);
    return name;
}

/* Returns the name as interpreted by programs that remove path parameters, NTFS streams, surrounding blanks,
 * trailing dots and ASP.NET sessions. */
static mk_str trim_segment(mk_str name)
{
    name = trim_blanks(strip_ntfs_stream(mk_str_first(name, mk_str_find(name, ';'))));
    if (mk_str_eq(name, MK_STR("..")))
        return name;
    while (has_trimmable_end(name))
        name.len -= mk_max(trailing_blank_len(name), 1u);
    return is_aspnet_session(name) ? MK_STR("") : name;
}

/* Returns the length of the path of the parent folder, including its final slash. */
static size_t parent_folder_len(const char *buf, size_t len)
{
    if (len > 1)
        len--;
    while (buf[len - 1] != '/')
        len--;
    return len;
}

static bool is_path_end(char c)
{
    return c == '?' || c == '#' || c == '\0';
}

static mk_str strip_query(mk_str path)
{
    size_t len = 0;
    while (len < path.len && !is_path_end(path.p[len]))
        len++;
    return mk_str_first(path, len);
}

/* Returns the part after the authority, if the path begins with two slashes; `rest` is the path after the
 * first. */
static mk_str skip_authority(mk_str rest, unsigned how)
{
    size_t gap = rest.len ? separator_len_at(rest, how) : 0;
    bool separated;
    if (!gap)
        return rest;
    while (rest.len && (gap = separator_len_at(rest, how)))
        rest = mk_str_skip(rest, gap);
    (void)next_segment(&rest, how, &separated);
    return rest;
}

mk_str mk_path_interpret(mk_str path, unsigned how, char *buf)
{
    size_t len = 1;
    bool separated;
    mk_str rest = mk_str_skip(how & MK_PATH_READING_QUERY ? strip_query(path) : path, 1);
    if (how & MK_PATH_READING_AUTHORITY)
        rest = skip_authority(rest, how);
    buf[0] = '/';
    while (rest.len) {
        mk_str name = next_segment(&rest, how, &separated);
        if (how & MK_PATH_READING_TAILS)
            name = trim_segment(name);
        if (mk_str_eq(name, MK_STR(".."))) {
            len = parent_folder_len(buf, len);
        } else if (name.len && !mk_str_eq(name, MK_STR("."))) {
            memcpy(buf + len, name.p, name.len);
            len += name.len;
        }
        if (separated && buf[len - 1] != '/')
            buf[len++] = '/';
    }
    return mk_str_of(buf, len);
}

static mk_str decode_escapes(mk_str path, char *buf)
{
    size_t len = 0;
    for (size_t i = 0, n; i < path.len; i += n) {
        char c = path.p[i];
        n = mk_max(decode_escape(path, i, &c), 1u);
        buf[len++] = c;
    }
    return mk_str_of(buf, len);
}

/* Decodes overlong characters, and drops tabs and line ends. `path` may be in `buf` already. */
static mk_str decode_overlong(mk_str path, char *buf)
{
    size_t len = 0;
    for (size_t i = 0, n; i < path.len; i += n) {
        n = overlong_char_len_at(path, i);
        char c = n ? decode_overlong_char(path, i, n) : path.p[i];
        n = mk_max(n, 1u);
        if (!is_char_dropped_by_parsers(c))
            buf[len++] = c;
    }
    return mk_str_of(buf, len);
}

mk_str mk_path_decode_again(mk_str path, char *buf)
{
    return decode_overlong(decode_escapes(path, buf), buf);
}

/* Removes tabs and line ends, as URL parsers do. */
static mk_str drop_line_ends(mk_str path, char *buf)
{
    size_t len = 0;
    for (size_t i = 0; i < path.len; i++)
        if (!is_char_dropped_by_parsers(path.p[i]))
            buf[len++] = path.p[i];
    return mk_str_of(buf, len);
}

bool mk_path_may_begin_with_slash(mk_str path)
{
    char buf[MK_PATH_VARIED_MAX];
    path = mk_str_first(path, sizeof buf); /* only the beginning matters */
    mk_str once = drop_line_ends(path, buf);
    if (once.len && separator_len_at(once, MK_PATH_READING_SLASHES))
        return true;
    mk_str twice = mk_path_decode_again(path, buf);
    return twice.len && separator_len_at(twice, MK_PATH_READING_SLASHES);
}

/* ---- Dots ---- */

/* Is the name "..", apart from surrounding white space, or does it consist of white space and at least two
 * dots? */
static bool is_two_dots(mk_str name)
{
    size_t dots = 0;
    bool has_blank = false;
    name = trim_blanks(name);
    if (mk_str_eq(name, MK_STR("..")))
        return true;
    for (size_t i = 0; i < name.len; i++) {
        dots += name.p[i] == '.';
        has_blank |= is_blank(name.p[i]);
        if (name.p[i] != '.' && !is_blank(name.p[i]))
            return false;
    }
    return has_blank && dots > 1;
}

/* Could a program that truncates the segment interpret it as ".."? A NUL may end the name or count as a
 * space. */
static bool is_dot_dot_segment(mk_str name)
{
    name = mk_str_first(mk_str_first(name, mk_str_find(name, ';')), mk_str_find(name, ':'));
    return is_two_dots(name) || is_two_dots(strip_query(trim_blanks(name)));
}

static bool has_dot_dot_segment(mk_str path)
{
    bool separated;
    while (path.len) {
        mk_str name = next_segment(&path, MK_PATH_READING_SLASHES, &separated);
        if (is_dot_dot_segment(name))
            return true;
    }
    return false;
}

bool mk_path_hides_dot_segments(mk_str path)
{
    char buf[MK_PATH_VARIED_MAX], decoded[MK_PATH_VARIED_MAX];
    if (path.len > sizeof buf)
        return true;
    path = drop_line_ends(path, buf);
    if (has_dot_dot_segment(path) || has_dot_dot_segment(mk_path_decode_again(path, decoded)))
        return true;
    char cut[MK_PATH_VARIED_MAX]; /* for programs that trim names before they decode */
    return has_dot_dot_segment(
        mk_path_decode_again(mk_path_interpret(path, MK_PATH_READING_TAILS, cut), decoded));
}

/* ---- All variants ---- */

struct variants {
    mk_str path; /* original path */
    mk_str *list;
    size_t n;
    struct mk_arena *arena;
    char *spare_buf; /* buffer for the next variant; NULL: none */
    const struct mk_path_scripts *scripts;
    bool follows_script;
    size_t left; /* total bytes that further paths after script names may have */
};

static bool is_known_variant(const struct variants *v, mk_str path)
{
    for (size_t i = 0; i < v->n; i++)
        if (mk_str_eq(v->list[i], path))
            return true;
    return mk_str_eq(v->path, path);
}

/* Allocates a buffer of the length of the path, which is the maximum length of a variant. Returns 0 or a
 * status. */
static unsigned alloc_variant(struct variants *v)
{
    if (v->n == MK_PATH_VARIANTS_MAX)
        return 400;
    if (!v->spare_buf)
        v->spare_buf = mk_arena_alloc(v->arena, v->path.len);
    return v->spare_buf ? 0 : 503;
}

/* Adds the path in the spare buffer, if it is new. A "/" that follows a script name at the end of a path is
 * not a variant. True: added. */
static bool add_variant(struct variants *v, mk_str one)
{
    if (is_known_variant(v, one) || (v->follows_script && one.len == 1))
        return false;
    v->list[v->n++] = one;
    v->spare_buf = NULL;
    return true;
}

/* Returns the flags of the interpretations that may change the path. */
static unsigned applicable_interpretations(mk_str path)
{
    unsigned how = MK_PATH_READING_TAILS; /* any name may have an ending that programs remove */
    for (size_t i = 0; i < path.len; i++)
        if (is_path_end(path.p[i]))
            how |= MK_PATH_READING_QUERY;
        else if (path.p[i] != '/' && separator_len_at(mk_str_skip(path, i), MK_PATH_READING_SLASHES))
            how |= MK_PATH_READING_SLASHES;
    mk_str rest = mk_str_skip(path, 1);
    if (rest.len && separator_len_at(rest, MK_PATH_READING_SLASHES))
        how |= MK_PATH_READING_AUTHORITY;
    return how;
}

static unsigned add_interpretations(struct variants *v, mk_str path)
{
    unsigned ways = applicable_interpretations(path), status;
    for (unsigned how = 0; how <= MK_PATH_READING_ALL; how++) {
        if (how & ~ways)
            continue;
        if ((status = alloc_variant(v)))
            return status;
        add_variant(v, mk_path_interpret(path, how, v->spare_buf));
    }
    return 0;
}

static bool has_escapes(mk_str path)
{
    char c;
    for (size_t i = 0; i < path.len; i++)
        if (decode_escape(path, i, &c) || overlong_char_len_at(path, i))
            return true;
    return false;
}

/* Adds the interpretations of the path itself, and those of the path with its names trimmed first: some
 * programs trim names before they recognize further separators, others afterwards. */
static unsigned add_interpretations_in_both_orders(struct variants *v, mk_str path)
{
    char buf[MK_PATH_VARIED_MAX];
    unsigned status = add_interpretations(v, path);
    return status ? status : add_interpretations(v, mk_path_interpret(path, MK_PATH_READING_TAILS, buf));
}

static unsigned add_decoded_variants(struct variants *v, mk_str path)
{
    char buf[MK_PATH_VARIED_MAX], decoded[MK_PATH_VARIED_MAX];
    if (!has_escapes(path))
        return 0;
    mk_str cut = mk_path_interpret(path, MK_PATH_READING_TAILS, buf);
    unsigned status = add_interpretations_in_both_orders(v, mk_path_decode_again(path, decoded));
    return status ? status : add_interpretations(v, mk_path_decode_again(cut, decoded));
}

static unsigned add_all_variants(struct variants *v, mk_str of)
{
    char buf[MK_PATH_VARIED_MAX];
    mk_str path = drop_line_ends(of, buf);
    unsigned status = add_interpretations_in_both_orders(v, path);
    return status ? status : add_decoded_variants(v, path);
}

/* Adds `folder` with `rest`, the path after a script name, and the variants of the result. `folder` is empty,
 * or the folder of the script, because a path in that folder without the script name may lead to the same
 * script. */
static unsigned add_path_info(struct variants *v, mk_str folder, mk_str rest)
{
    unsigned status = alloc_variant(v);
    if (status)
        return status;
    struct mk_buf out = mk_buf_fixed(v->spare_buf, v->path.len);
    mk_buf_add(&out, folder);
    mk_buf_add(&out, rest.p[0] == '/' ? MK_STR("") : MK_STR("/"));
    mk_buf_add(&out, rest);
    mk_str one = mk_buf_str(&out);
    if (!add_variant(v, one) || !may_path_vary(one))
        return 0;
    if (one.len > v->left)
        return 414;
    v->left -= one.len;
    return add_all_variants(v, one);
}

static unsigned add_script_path_infos(struct variants *v, mk_str path, size_t start, size_t end)
{
    mk_str folder = mk_str_first(path, start), rest = mk_str_skip(path, end);
    unsigned status = add_path_info(v, MK_STR(""), rest);
    return status || !folder.len ? status : add_path_info(v, folder, rest);
}

static unsigned add_scripts_in_path(struct variants *v, mk_str path)
{
    size_t folder = 0, end = host_script_name_end(path, v->scripts);
    unsigned status = end ? add_script_path_infos(v, path, 0, end) : 0;
    for (size_t i = 0; !status && i < path.len; i++) {
        if (path.p[i] == '/')
            folder = i;
        if (path.p[i] == '.' && (end = script_name_end(path, i, v->scripts)))
            status = add_script_path_infos(v, path, folder, end);
    }
    return status;
}

/* Adds the paths that follow script names in the original path and in all variants, including the variants
 * added here. */
static unsigned add_all_scripts(struct variants *v)
{
    v->follows_script = true;
    unsigned status = add_scripts_in_path(v, v->path);
    for (size_t i = 0; !status && i < v->n; i++)
        status = add_scripts_in_path(v, v->list[i]);
    return status;
}

unsigned mk_path_variants(mk_str path, bool has_slash, const struct mk_path_scripts *scripts,
                          struct mk_arena *arena, struct mk_path_variants *out)
{
    struct variants v = {
        .path = path, .list = out->list, .arena = arena, .scripts = scripts, .left = MK_PATH_VARIED_MAX};
    out->n = out->n_readings = 0;
    if (!mk_path_may_vary(path, has_slash, scripts))
        return 0;
    if (path.len > MK_PATH_VARIED_MAX)
        return 414;
    unsigned status = add_all_variants(&v, path);
    out->n_readings = v.n;
    if (!status)
        status = add_all_scripts(&v);
    out->n = status ? 0 : v.n;
    return status;
}
