/* SPDX-License-Identifier: Apache-2.0 */
#include "config_quote.h"

/* `$${` escapes `${`. */
static void append_escaped_char(struct mk_buf *out, const char *at)
{
    if (at[0] == '$' && at[1] == '{')
        mk_buf_add_char(out, '$');
    mk_buf_add_char(out, *at);
}

void dev_config_quote_text(struct mk_buf *out, const char *text)
{
    mk_buf_add_char(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            mk_buf_add_char(out, '\\');
        append_escaped_char(out, text);
    }
    mk_buf_add_char(out, '"');
}

void dev_config_quote_path(struct mk_buf *out, const char *path)
{
    for (; *path; path++)
        append_escaped_char(out, path);
}
