/* SPDX-License-Identifier: Apache-2.0 */
#include "exposition.h"

void metrics_exposition_begin(struct mk_buf *out, const char *name, const char *type, const char *help)
{
    mk_buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_exposition_add_label(struct mk_buf *out, bool is_first, const char *name, mk_str value)
{
    mk_buf_addf(out, "%c%s=\"", is_first ? '{' : ',', name);
    for (size_t i = 0; i < value.len; i++) {
        char c = value.p[i];
        if (c == '\\' || c == '"' || c == '\n')
            mk_buf_add_char(out, '\\');
        mk_buf_add_char(out, c == '\n' ? 'n' : c);
    }
    mk_buf_add_char(out, '"');
}

void metrics_exposition_add_value(struct mk_buf *out, uint64_t n)
{
    mk_buf_add_char(out, ' ');
    mk_buf_add_num(out, n);
    mk_buf_add_char(out, '\n');
}

void metrics_exposition_add_seconds(struct mk_buf *out, uint64_t us)
{
    mk_buf_addf(out, "%llu", (unsigned long long)(us / 1000000));
    if (us % 1000000 == 0)
        return;
    mk_buf_addf(out, ".%06llu", (unsigned long long)(us % 1000000));
    while (!out->failed && out->p[out->len - 1] == '0')
        out->len--;
}
