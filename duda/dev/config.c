/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* `$${` stands for `${`. */
static void add(struct mk_buf *out, const char *at)
{
    if (at[0] == '$' && at[1] == '{')
        mk_buf_add_char(out, '$');
    mk_buf_add_char(out, *at);
}

void dev_config_text(struct mk_buf *out, const char *text)
{
    mk_buf_add_char(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            mk_buf_add_char(out, '\\');
        add(out, text);
    }
    mk_buf_add_char(out, '"');
}

void dev_config_path(struct mk_buf *out, const char *path)
{
    for (; *path; path++)
        add(out, path);
}
