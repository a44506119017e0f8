/* SPDX-License-Identifier: Apache-2.0 */
/* application/x-www-form-urlencoded, as sent by browsers. */
#include <duda/form.h>
#include <errno.h>

enum { SIZE_DEFAULT = 1 << 20, FIELDS_DEFAULT = 256, NAME_DEFAULT = 256, VALUE_DEFAULT = 64 << 10 };

struct duda_form_limits duda_form_limits_of(const struct duda_form_limits *given)
{
    static const struct duda_form_limits none;
    struct duda_form_limits l = given ? *given : none;
    l.size = l.size ? l.size : SIZE_DEFAULT;
    l.fields = l.fields ? l.fields : FIELDS_DEFAULT;
    l.name = l.name ? l.name : NAME_DEFAULT;
    l.value = l.value ? l.value : VALUE_DEFAULT;
    return l;
}

static size_t count_pairs(mk_str text)
{
    size_t n = 0;
    while (text.p)
        n += mk_str_cut(&text, '&').len > 0;
    return n;
}

/* The byte encoded by the two digits after a '%', or -1. */
static int decode_percent_byte(mk_str s)
{
    if (s.len < 2)
        return -1;
    int high = mk_char_hex(s.p[0]), low = mk_char_hex(s.p[1]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Decodes to *buf, which is large enough, appends a NUL, and advances *buf. */
static int decode_form_component(mk_str s, char **buf, size_t max, mk_str *out)
{
    char *to = *buf;
    size_t len = 0;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        if (c == '%') {
            int byte = decode_percent_byte(mk_str_skip(s, i + 1));
            if (byte < 0)
                return -EBADMSG;
            c = (char)byte;
            i += 2;
        } else if (c == '+') {
            c = ' ';
        }
        to[len++] = c;
    }
    to[len] = '\0';
    *buf += len + 1;
    *out = mk_str_of(to, len);
    return len <= max ? 0 : -EMSGSIZE;
}

int duda_form_data_parse(mk_str text, const struct duda_allocator *memory,
                         const struct duda_form_limits *given, struct duda_form_data *out)
{
    struct duda_form_limits limits = duda_form_limits_of(given);
    *out = (struct duda_form_data){NULL, 0};
    size_t n = text.len <= limits.size ? count_pairs(text) : 0;
    if (text.len > limits.size || n > limits.fields)
        return -EMSGSIZE;
    struct duda_pair *pairs = duda_allocator_zalloc(memory, n, sizeof *pairs);
    char *buf = (char *)memory->alloc(memory->ctx, text.len + 2 * n + 1);
    if (!pairs || !buf)
        return -ENOMEM;
    n = 0;
    while (text.p) {
        mk_str value = mk_str_cut(&text, '&');
        if (value.len == 0)
            continue;
        mk_str name = mk_str_cut(&value, '=');
        int e = decode_form_component(name, &buf, limits.name, &pairs[n].name);
        if (!e)
            e = decode_form_component(value, &buf, limits.value, &pairs[n].value);
        if (e)
            return e;
        n++;
    }
    *out = (struct duda_form_data){pairs, n};
    return 0;
}

mk_str duda_form_data_get_at(const struct duda_form_data *f, const char *name, size_t expected)
{
    mk_str key = mk_str_from_c(name);
    for (size_t i = 0; i < f->n; i++)
        if (mk_str_eq(f->pairs[i].name, key) && expected-- == 0)
            return f->pairs[i].value;
    return MK_STR_NULL;
}

mk_str duda_form_data_get(const struct duda_form_data *f, const char *name)
{
    return duda_form_data_get_at(f, name, 0);
}
