/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/alias.h"

#include "conf/words.h"
#include "os/fd.h"

/* Is `path` an absolute, decoded path without empty or dot segments ("/docs", "/a/b c")? */
static bool is_mountable(mk_str path)
{
    if (!mk_str_starts(path, MK_STR("/")))
        return false;
    for (mk_str rest = mk_str_skip(path, 1); rest.p;) {
        mk_str part = mk_str_cut(&rest, '/');
        if (part.len == 0 || mk_str_eq(part, MK_STR(".")) || mk_str_eq(part, MK_STR("..")))
            return false;
    }
    return true;
}

static bool check_alias_path(const struct mk_conf_ctx *ctx, const struct mk_aliases *list, mk_str word,
                             mk_str path)
{
    if (!is_mountable(path)) {
        mk_conf_ctx_error(ctx, word, "`%.*s` is not a path for an Alias: expected %s",
                          MK_CONF_REPORT_ARG(word), ctx->key->syntax);
        if (path.len == 0)
            mk_conf_ctx_hint(ctx, "the folder of `/` is the DocumentRoot");
        return false;
    }
    for (size_t i = 0; i < list->n; i++) {
        if (!mk_str_eq(list->at[i].path, path))
            continue;
        mk_conf_ctx_error(ctx, word, "`%.*s` already has an Alias on line %u", MK_CONF_REPORT_ARG(word),
                          list->at[i].entry->at.line);
        return false;
    }
    return true;
}

bool mk_alias_parse(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct mk_aliases *list = field;
    struct mk_alias one = {.entry = ctx->entry};
    mk_str rest = value, path, folder, more;
    if (!mk_conf_ctx_word(ctx, &rest, &path) || !mk_conf_ctx_word(ctx, &rest, &folder) ||
        !mk_conf_ctx_word(ctx, &rest, &more))
        return false;
    if (folder.len == 0 || more.p) {
        mk_conf_ctx_error(ctx, value, "expected a path and one folder: %s", ctx->key->syntax);
        return false;
    }
    one.path = mk_str_ends(path, MK_STR("/")) ? mk_str_first(path, path.len - 1) : path;
    if (!check_alias_path(ctx, list, path, one.path))
        return false;
    one.folder = mk_conf_ctx_path(ctx, folder);
    return one.folder.p && mk_arena_append(ctx->arena, &list->at, &list->n, &one, sizeof one);
}

bool mk_alias_show(const void *field, size_t i, struct mk_buf *out)
{
    const struct mk_aliases *list = field;
    if (i >= list->n)
        return false;
    mk_conf_words_quote_word(out, list->at[i].path);
    mk_buf_add_char(out, ' ');
    mk_conf_words_quote_word(out, list->at[i].folder);
    return true;
}

/* When descriptors run out, every other folder fails as well, so the shortage is reported only once. */
static void report_fd_shortage(struct mk_config_generation *g, const struct mk_conf_source_pos *at,
                               struct mk_conf_report *report, mk_err e)
{
    uint64_t limit = 0;
    if (g->lacks_descriptors)
        return;
    g->lacks_descriptors = true;
    (void)!mk_fd_set_limit(0, &limit);
    mk_conf_report_error(report, at, "cannot open the folders of all hosts: %s", mk_err_text(e));
    if (e == -EMFILE)
        mk_conf_report_hint(
            report,
            "each folder needs a file descriptor, and this process may have %llu: raise the limit "
            "(LimitNOFILE= in the unit, `ulimit -Hn` in a shell)",
            (unsigned long long)limit);
}

void mk_alias_open_folder(struct mk_config_generation *g, const char *path,
                          const struct mk_conf_source_pos *at, struct mk_conf_report *report, int *fd)
{
    mk_err e = mk_folder_cache_acquire(&g->shared->folders, path, fd);
    if (e == -ENOMEM)
        report->no_memory = true;
    else if (e == -EMFILE || e == -ENFILE)
        report_fd_shortage(g, at, report, e);
    else if (e)
        mk_conf_report_error(report, at, "cannot serve the folder `%s`: %s", path, mk_err_text(e));
}

void mk_alias_open_all(struct mk_config_generation *g, struct mk_vhost_config *site,
                       struct mk_conf_report *report)
{
    const struct mk_aliases *list = &site->settings.aliases;
    struct mk_root *roots = mk_arena_zalloc(&g->arena, list->n ? list->n : 1, sizeof *roots);
    if (!roots)
        return;
    site->host.aliases = roots;
    for (size_t i = 0; i < list->n; i++) {
        const struct mk_alias *a = &list->at[i];
        roots[i] = (struct mk_root){.fd = -1, .at = a->path, .path = a->folder.p, .how = site->host.root.how};
        site->host.n_aliases++;
        struct mk_conf_source_pos at = mk_conf_tree_value_pos(a->entry, a->entry->value);
        mk_alias_open_folder(g, a->folder.p, &at, report, &roots[i].fd);
    }
}

void mk_alias_close_all(struct mk_config_generation *g, struct mk_vhost_config *site)
{
    for (size_t i = 0; i < site->host.n_aliases; i++)
        mk_folder_cache_release(&g->shared->folders, &site->host.aliases[i].fd);
}
