/* SPDX-License-Identifier: Apache-2.0 */
/* Single pass over the segments; `..` moves the output position back. */
#include "http/path.h"

#include <monkey/text.h>

#include "base/codec.h"
#include "base/compiler.h"
#include "http/scan.h"

struct path {
    char *out, *marks; /* NULL: no marks */
    size_t len;
    unsigned flags;
};

/* Decodes the escape at `at`. Returns the character; -1: malformed. */
static int decode_escape(mk_str raw, size_t at)
{
    if (raw.len - at < 3)
        return -1;
    int high = mk_char_hex(raw.p[at + 1]), low = mk_char_hex(raw.p[at + 2]);
    if (high < 0 || low < 0)
        return -1;
    return high << 4 | low;
}

static bool is_dot_segment(const char *p, size_t len)
{
    return len >= 1 && len <= 2 && p[0] == '.' && p[len - 1] == '.';
}

static void append_char(struct path *path, char c, enum mk_path_mark mark)
{
    if (path->marks)
        path->marks[path->len] = (char)mark;
    path->out[path->len++] = c;
}

/* Decodes the segment at *at and appends it. A %2F splits the segment into pieces, none of which may be a dot
 * segment: otherwise, a program that decodes the path again would get one. */
static int decode_segment(mk_str raw, size_t *at, struct path *path)
{
    bool cut = false;
    size_t piece = path->len;
    for (; *at < raw.len && raw.p[*at] != '/'; *at += 1) {
        int c = (unsigned char)raw.p[*at];
        bool escaped = c == '%';
        if (escaped) {
            c = decode_escape(raw, *at);
            *at += 2;
        }
        if (c <= 0)
            return 400;
        if (c != '/') {
            append_char(path, (char)c, escaped ? MK_PATH_WAS_ESCAPED : MK_PATH_AS_SENT);
            continue;
        }
        if (is_dot_segment(path->out + piece, path->len - piece))
            return 400;
        for (int i = 0; i < 3; i++)
            append_char(path, "%2F"[i], MK_PATH_AS_SENT);
        piece = path->len;
        cut = true;
    }
    path->flags |= cut ? MK_PATH_ENCODED_SLASH : 0;
    return cut && is_dot_segment(path->out + piece, path->len - piece) ? 400 : 0;
}

/* Removes the segment that begins at `from` if it is a dot segment; for `..`, also its parent. */
static int remove_dot_segment(struct path *path, size_t from)
{
    size_t dots = path->len - from;
    if (!is_dot_segment(path->out + from, dots))
        return 0;
    path->len = from;
    if (dots == 1)
        return 0;
    if (from == 1)
        return 400;
    path->len--;
    while (path->out[path->len - 1] != '/')
        path->len--;
    return 0;
}

/* Tests eight pairs of adjacent bytes at a time. */
bool mk_path_is_plain(mk_str raw)
{
    if (raw.len == 0 || raw.p[0] != '/')
        return false;
    const char *at = raw.p, *last = raw.p + raw.len - 1;
    for (; last - at >= 8; at += 8) {
        uint64_t word = mk_scan_load(at), next = mk_scan_load(at + 1);
        uint64_t pairs = mk_scan_equal(word, '/') & (mk_scan_equal(next, '/') | mk_scan_equal(next, '.'));
        if (pairs | mk_scan_equal(word, '%') | mk_scan_below(word, 1))
            return false;
    }
    for (; at < last; at++)
        if (*at == '%' || *at == 0 || (*at == '/' && (at[1] == '/' || at[1] == '.')))
            return false;
    return *last != '%' && *last != 0;
}

static bool has_dot_part(const struct path *path)
{
    for (size_t i = 0; i + 1 < path->len; i++)
        if (path->out[i] == '/' && path->out[i + 1] == '.')
            return true;
    return false;
}

static int decode_path(mk_str raw, char *out, char *marks, mk_str *result, unsigned *flags)
{
    struct path path = {.out = out, .marks = marks};
    if (raw.len == 0 || raw.p[0] != '/')
        return 400;
    for (size_t at = 0; at < raw.len;) {
        if (raw.p[at] == '/') {
            if (path.len == 0 || out[path.len - 1] != '/')
                append_char(&path, '/', MK_PATH_AS_SENT);
            at++;
            continue;
        }
        size_t from = path.len;
        if (decode_segment(raw, &at, &path) || remove_dot_segment(&path, from))
            return 400;
    }
    out[path.len] = '\0';
    *result = mk_str_of(out, path.len);
    *flags = path.flags | (has_dot_part(&path) ? MK_PATH_DOT_PART : 0);
    return 0;
}

/* Is the next character a dot, encoded or not? Moves *at past it. */
static bool skip_dot(mk_str raw, size_t *at)
{
    bool is_escaped = *at < raw.len && raw.p[*at] == '%' && decode_escape(raw, *at) == '.';
    bool is = is_escaped || (*at < raw.len && raw.p[*at] == '.');
    *at += is_escaped ? 3 : is;
    return is;
}

bool mk_path_has_dot_segments(mk_str raw)
{
    for (size_t i = 0; i < raw.len; i++) {
        size_t at = i + 1;
        if (raw.p[i] == '\\')
            return true;
        if (raw.p[i] != '/' || !skip_dot(raw, &at))
            continue;
        (void)skip_dot(raw, &at);
        if (at == raw.len || raw.p[at] == '/')
            return true;
    }
    return false;
}

int mk_path_decode(mk_str raw, char *out, mk_str *result, unsigned *flags)
{
    return decode_path(raw, out, NULL, result, flags);
}

int mk_path_decode_marked(mk_str raw, char *out, char *marks, mk_str *result)
{
    unsigned flags;
    return decode_path(raw, out, marks, result, &flags);
}

/* Is the character allowed unencoded in a path (RFC 3986, section 3.3)? */
static bool is_path_char(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) || (c && strchr("/-._~!$&'()*+,;=:@", c));
}

static bool is_unreserved(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) || (c && strchr("/-._~", c));
}

void mk_path_encode(struct mk_buf *out, mk_str path, const char *marks)
{
    for (size_t i = 0; i < path.len; i++) {
        char c = path.p[i];
        bool escaped = marks && marks[i] == MK_PATH_WAS_ESCAPED;
        bool is_slash = marks && c == '%' && !escaped; /* this `%` belongs to a %2F, which stays encoded */
        if (is_slash || (escaped ? is_unreserved(c) : is_path_char(c)))
            mk_buf_add_char(out, c);
        else
            mk_url_escape(out, mk_str_of(&c, 1));
    }
}

/* ---- ACME ---- */

MK_COLD mk_str mk_acme_token(mk_str path)
{
    mk_str folder = MK_STR("/.well-known/acme-challenge/"), token = mk_str_skip(path, folder.len);
    if (!mk_str_starts(path, folder))
        return MK_STR_NULL;
    for (size_t i = 0; i < token.len; i++)
        if (!mk_char_is_alpha(token.p[i]) && !mk_char_is_digit(token.p[i]) && token.p[i] != '-' &&
            token.p[i] != '_')
            return MK_STR_NULL;
    return token.len ? token : MK_STR_NULL;
}
