/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/sandbox_rules.h"

#include <sys/stat.h>

#include "base/codec.h"
#include "setup/config.h"

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

/* ---- Permissions for plugins ---- */

static void add_sandbox_rule(struct mk_config *c, enum mk_sandbox_permission what, mk_str path)
{
    struct mk_sandbox_rule **end = &c->generation->allowed;
    for (; *end; end = &(*end)->next)
        if ((*end)->by == c->plugin && (*end)->what == what && mk_str_eq((*end)->path, path))
            return;
    struct mk_sandbox_rule *a = mk_config_alloc(c, sizeof *a);
    mk_str copy = mk_config_copy(c, path); /* NUL-terminated */
    if (!a || !copy.p)
        return;
    *a = (struct mk_sandbox_rule){.by = c->plugin, .what = what, .path = copy};
    *end = a;
}

void mk_config_allow_path(struct mk_config *c, mk_str path)
{
    add_sandbox_rule(c, MK_SANDBOX_READ, path);
}

void mk_config_allow_writing(struct mk_config *c, mk_str path)
{
    add_sandbox_rule(c, MK_SANDBOX_WRITE, path);
}

/* The sandbox allows files, not names: workers cannot read a file that replaces an allowed file. A change
 * therefore reloads the configuration, which starts new workers. */
static void watch_file(struct mk_config *c, const char *path)
{
    struct stat st;
    if (c->generation->server.sandbox && lstat(path, &st) == 0 && S_ISREG(st.st_mode))
        (void)!mk_file_watch_add(&c->generation->watched, &c->generation->arena, path);
}

void mk_config_allow_resolver(struct mk_config *c)
{
    add_sandbox_rule(c, MK_SANDBOX_RESOLVE_NAMES, MK_STR(""));
    watch_file(c, "/etc/hosts");
    watch_file(c, "/etc/resolv.conf");
    watch_file(c, "/etc/nsswitch.conf");
}

void mk_config_allow_trust_store(struct mk_config *c)
{
    add_sandbox_rule(c, MK_SANDBOX_READ_TRUST_STORE, MK_STR(""));
}
