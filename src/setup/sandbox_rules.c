/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/sandbox_rules.h"

#include "base/codec.h"

const char *mk_sandbox_rules_describe(enum mk_sandbox_permission what)
{
    static const char words[][24] = {
        [MK_SANDBOX_READ] = "read ",
        [MK_SANDBOX_WRITE] = "write below ",
        [MK_SANDBOX_RESOLVE_NAMES] = "resolve names",
        [MK_SANDBOX_READ_TRUST_STORE] = "read trust anchors",
    };
    return words[what];
}

void mk_sandbox_rules_print(const struct mk_config_generation *g, const struct mk_loaded_plugin *by,
                            const char *prefix, struct mk_buf *out)
{
    const char *before = prefix;
    for (const struct mk_sandbox_rule *a = g->server.sandbox ? g->allowed : NULL; a; a = a->next) {
        if (a->by != by)
            continue;
        mk_buf_addf(out, "%s%s", before, mk_sandbox_rules_describe(a->what));
        mk_log_escape(out, a->path);
        before = ", ";
    }
    if (before != prefix)
        mk_buf_add_char(out, '\n');
}
