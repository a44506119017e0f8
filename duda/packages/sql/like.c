/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of LIKE. */
#include <duda/memory.h>
#include <duda/sql.h>

enum { LIKE_ESCAPE = '!' };

mk_str duda_sql_like_escape(struct duda_ctx *d, mk_str text)
{
    char *out = text.len < SIZE_MAX / 2 ? duda_alloc(d, 2 * text.len + 1) : NULL;
    size_t n = 0;
    if (!out)
        return MK_STR_NULL;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i];
        if (c == '%' || c == '_' || c == LIKE_ESCAPE)
            out[n++] = LIKE_ESCAPE;
        out[n++] = c;
    }
    out[n] = '\0';
    return mk_str_of(out, n);
}
