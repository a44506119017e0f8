/* SPDX-License-Identifier: Apache-2.0 */
/* Parser for application/x-www-form-urlencoded, as sent by browsers. */
#include <errno.h>
#include <monkey/form.h>

enum { SIZE_DEFAULT = 1 << 20, FIELDS_DEFAULT = 256, NAME_DEFAULT = 256, VALUE_DEFAULT = 64 << 10 };

struct mk_form_limits mk_form_limits_of(const struct mk_form_limits *given)
{
    static const struct mk_form_limits none;
    struct mk_form_limits l = given ? *given : none;
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

/* Returns the byte encoded by the two digits after a '%', or -1. */
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

int mk_form_parse(mk_str text, const struct mk_allocator *memory, const struct mk_form_limits *given,
                  struct mk_form *out)
{
    struct mk_form_limits limits = mk_form_limits_of(given);
    *out = (struct mk_form){.n = 0};
    size_t n = text.len <= limits.size ? count_pairs(text) : 0;
    if (text.len > limits.size || n > limits.fields)
        return -EMSGSIZE;
    struct mk_form_field *fields = mk_allocator_zalloc(memory, n, sizeof *fields);
    char *buf = (char *)memory->alloc(memory->ctx, text.len + 2 * n + 1);
    if (!fields || !buf)
        return -ENOMEM;
    n = 0;
    while (text.p) {
        mk_str value = mk_str_cut(&text, '&');
        if (value.len == 0)
            continue;
        mk_str name = mk_str_cut(&value, '=');
        int e = decode_form_component(name, &buf, limits.name, &fields[n].name);
        if (!e)
            e = decode_form_component(value, &buf, limits.value, &fields[n].value);
        if (e)
            return e;
        n++;
    }
    out->fields = fields;
    out->n = n;
    return 0;
}

mk_str mk_form_get_at(const struct mk_form *f, const char *name, size_t expected)
{
    mk_str key = mk_str_from_c(name);
    for (size_t i = 0; i < f->n; i++)
        if (mk_str_eq(f->fields[i].name, key) && expected-- == 0)
            return f->fields[i].value;
    return MK_STR_NULL;
}

mk_str mk_form_get(const struct mk_form *f, const char *name)
{
    return mk_form_get_at(f, name, 0);
}

const struct mk_upload *mk_form_upload(const struct mk_form *f, const char *name)
{
    mk_str key = mk_str_from_c(name);
    for (size_t i = 0; i < f->n_uploads; i++)
        if (mk_str_eq(f->uploads[i].name, key))
            return &f->uploads[i];
    return NULL;
}
