/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/inventory_state.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/num.h"
#include "monkey/utf8.h"
#include "tls/file.h"

enum { KEY_MAX = 32, STATE_MAX = 256 * 1024 };

/* ---- JSON ---- */

static void skip_space(mk_str *in)
{
    while (in->len && (*in->p == ' ' || *in->p == '\n' || *in->p == '\r' || *in->p == '\t'))
        *in = mk_str_skip(*in, 1);
}

static bool accept_char(mk_str *in, char c)
{
    skip_space(in);
    if (!in->len || *in->p != c)
        return false;
    *in = mk_str_skip(*in, 1);
    return true;
}

static bool parse_unicode_escape(mk_str *in, struct mk_buf *out)
{
    uint32_t c = 0;
    char utf8[4];
    if (in->len < 4)
        return false;
    for (size_t i = 0; i < 4; i++) {
        char d = in->p[i];
        uint32_t n = d >= '0' && d <= '9'   ? (uint32_t)(d - '0')
                     : d >= 'a' && d <= 'f' ? (uint32_t)(d - 'a' + 10)
                     : d >= 'A' && d <= 'F' ? (uint32_t)(d - 'A' + 10)
                                            : 16;
        if (n == 16)
            return false;
        c = c * 16 + n;
    }
    *in = mk_str_skip(*in, 4);
    if (!c || (c >= 0xD800 && c <= 0xDFFF)) /* half of a character outside of the BMP */
        c = '?';
    mk_buf_add(out, mk_str_of(utf8, mk_utf8_encode(utf8, c)));
    return true;
}

static bool parse_escape(mk_str *in, struct mk_buf *out)
{
    static const char escapes[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *found = in->len && *in->p ? strchr(escapes, *in->p) : NULL;
    bool is_unicode = in->len && *in->p == 'u';
    if (!found && !is_unicode)
        return false;
    *in = mk_str_skip(*in, 1);
    if (is_unicode)
        return parse_unicode_escape(in, out);
    mk_buf_add_char(out, values[found - escapes]);
    return true;
}

/* Parses a string into a buffer, and truncates it if the buffer is too small. */
static bool parse_string(mk_str *in, char *buf, size_t size)
{
    struct mk_buf out = mk_buf_fixed(buf, size - 1);
    bool ok = accept_char(in, '"');
    while (ok && in->len && *in->p != '"') {
        char c = *in->p;
        *in = mk_str_skip(*in, 1);
        if (c == '\\')
            ok = parse_escape(in, &out);
        else if ((unsigned char)c < ' ')
            ok = false;
        else
            mk_buf_add_char(&out, c);
    }
    buf[out.len] = '\0';
    if (!ok || !in->len)
        return false;
    *in = mk_str_skip(*in, 1);
    return true;
}

/* Parses a number or a word. Numbers that are not whole and positive count as 0. */
static bool parse_scalar(mk_str *in, int64_t *n)
{
    size_t len = 0;
    uint64_t value;
    skip_space(in);
    while (len < in->len &&
           (strchr("+-.", in->p[len]) || (in->p[len] >= '0' && in->p[len] <= '9') ||
            (in->p[len] >= 'a' && in->p[len] <= 'z') || in->p[len] == 'E') &&
           in->p[len])
        len++;
    bool is_number = mk_num_parse(mk_str_first(*in, len), &value) && value <= INT64_MAX;
    *n = is_number ? (int64_t)value : 0;
    *in = mk_str_skip(*in, len);
    return len;
}

static int64_t *number_of(struct mk_tls_inventory_members *m, const char *key)
{
    return strcmp(key, "next") == 0       ? &m->next
           : strcmp(key, "at") == 0       ? &m->at
           : strcmp(key, "until") == 0    ? &m->until
           : strcmp(key, "failures") == 0 ? &m->failures
                                          : NULL;
}

static bool parse_member(mk_str *in, struct mk_tls_inventory_members *out)
{
    char key[KEY_MAX], ignored[KEY_MAX];
    int64_t n;
    if (!parse_string(in, key, sizeof key) || !accept_char(in, ':'))
        return false;
    skip_space(in);
    if (in->len && *in->p == '"')
        return strcmp(key, "why") == 0 ? parse_string(in, out->why, sizeof out->why)
                                       : parse_string(in, ignored, sizeof ignored);
    if (!parse_scalar(in, &n))
        return false;
    if (number_of(out, key))
        *number_of(out, key) = n;
    return true;
}

bool mk_tls_inventory_state_parse(mk_str in, struct mk_tls_inventory_members *out)
{
    *out = (struct mk_tls_inventory_members){0};
    if (!accept_char(&in, '{'))
        return false;
    if (!accept_char(&in, '}')) {
        do
            if (!parse_member(&in, out))
                return false;
        while (accept_char(&in, ','));
        if (!accept_char(&in, '}'))
            return false;
    }
    skip_space(&in);
    return !in.len;
}

/* ---- Files ---- */

/* Writes the path of FOLDER/part/NAME.json for the certificate FOLDER/certificates/NAME.pem. `name`: replaces
 * NAME. */
static bool format_state_path(const char *certificate, const char *part, const char *name,
                              char path[PATH_MAX])
{
    static const mk_str folder = MK_STR_INIT("/certificates/"), suffix = MK_STR_INIT(".pem");
    mk_str all = mk_str_from_c(certificate);
    size_t slash = mk_str_find_last(all, '/');
    if (slash == MK_STR_NONE || slash + 1 < folder.len || !mk_str_ends(all, suffix))
        return false;
    mk_str base = mk_str_skip(all, slash + 1), parent = mk_str_first(all, slash + 1);
    if (!mk_str_ends(parent, folder))
        return false;
    parent = mk_str_first(parent, parent.len - folder.len);
    base = name ? mk_str_from_c(name) : mk_str_first(base, base.len - suffix.len);
    int len = snprintf(path, PATH_MAX, "%.*s/%s/%.*s.json", MK_STR_ARG(parent), part, MK_STR_ARG(base));
    return len > 0 && len < PATH_MAX;
}

/* False: there is no such file. A damaged file is remembered in *state, and has no members. */
static bool read_state_file(const char *certificate, const char *part, const char *name,
                            struct mk_tls_inventory_members *out, struct mk_tls_inventory_state *state)
{
    char path[PATH_MAX], *text;
    struct mk_tls_settings_error ignored = {0};
    BIO *b;
    *out = (struct mk_tls_inventory_members){0};
    if (!format_state_path(certificate, part, name, path) || access(path, F_OK) != 0)
        return false;
    bool ok = !mk_tls_file_read_to_bio(path, true, "state", &b, &ignored);
    if (ok) {
        long len = BIO_get_mem_data(b, &text);
        ok = len > 0 && len <= STATE_MAX && mk_tls_inventory_state_parse(mk_str_of(text, (size_t)len), out);
        BIO_free(b);
    }
    if (!ok) {
        *out = (struct mk_tls_inventory_members){0};
        state->damaged = part;
    }
    return true;
}

void mk_tls_inventory_state_read(const char *certificate, struct mk_tls_inventory_state *out)
{
    struct mk_tls_inventory_members renewal, failure;
    *out = (struct mk_tls_inventory_state){0};
    if (read_state_file(certificate, "renewal", NULL, &renewal, out))
        out->renewal = renewal.next ? renewal.next : renewal.at;
    if (!read_state_file(certificate, "failures", NULL, &failure, out) &&
        !(access(certificate, F_OK) != 0 &&
          read_state_file(certificate, "failures", "_account", &failure, out)))
        return;
    out->retry = failure.until;
    out->failures = (uint64_t)failure.failures;
    (void)snprintf(out->reason, sizeof out->reason, "%s", failure.why);
}
