/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/allowed.h"

#include "base/codec.h"

const char *mk_allowed_word(enum mk_allows what)
{
    static const char words[][24] = {
        [MK_ALLOWS_READING] = "read ",
        [MK_ALLOWS_WRITING] = "write below ",
        [MK_ALLOWS_NAMES] = "resolve names",
        [MK_ALLOWS_TRUST] = "read trust anchors",
    };
    return words[what];
}

void mk_allowed_print(const struct mk_generation *g, const struct mk_loaded *by, const char *prefix,
                      struct mk_buf *out)
{
    const char *before = prefix;
    for (const struct mk_allowed *a = g->server.sandbox ? g->allowed : NULL; a; a = a->next) {
        if (a->by != by)
            continue;
        mk_buf_addf(out, "%s%s", before, mk_allowed_word(a->what));
        mk_log_escape(out, a->path);
        before = ", ";
    }
    if (before != prefix)
        mk_buf_add_char(out, '\n');
}
