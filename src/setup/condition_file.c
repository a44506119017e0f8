/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/condition_file.h"

#include <errno.h>
#include <monkey/mem.h>
#include <sys/stat.h>

#include "os/file.h"
#include "os/network_set.h"

/* A list that was read. The report of the load keeps it, so that other conditions find it. */
struct mk_conf_list {
    struct mk_conf_list *next;
    const struct mk_arena *arena; /* the memory of `set` */
    mk_str path;
    enum { LIST_NETWORKS, LIST_GLOBS, LIST_SUBSTRINGS } kind;
    bool nocase;
    const void *set; /* NULL: the list is empty */
};

/* ---- Reading ---- */

/* Returns the content; absent after reporting an error. */
static mk_str read_list(const struct mk_condition_parser *p, mk_str name, mk_str path, struct mk_buf *out)
{
    struct stat st;
    mk_err e = stat(path.p, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
    *out = mk_buf_growing(MK_CONDITION_FILE_MAX);
    e = e ? e : mk_file_read_all(path.p, out);
    if (e == -EINVAL)
        mk_conf_ctx_error(p->ctx, name, "%.*s is not a regular file", MK_STR_ARG(path));
    else if (e == -EFBIG)
        mk_conf_ctx_error(p->ctx, name, "the list %.*s has more than %d MiB", MK_STR_ARG(path),
                          MK_CONDITION_FILE_MAX >> 20);
    else if (e)
        mk_conf_ctx_error(p->ctx, name, "cannot read the list %.*s: %s", MK_STR_ARG(path), strerror(-e));
    if (e)
        return MK_STR_NULL;
    return out->len ? mk_buf_str(out) : MK_STR("");
}

struct lines {
    mk_str rest;
    struct mk_conf_source_pos at; /* of the current line */
    bool has_trailing_comments;
};

/* Returns the next value, without comment and blanks; absent at the end. */
static mk_str next_value(struct lines *l)
{
    while (l->rest.p) {
        mk_str line = mk_str_cut(&l->rest, '\n');
        l->at.line++;
        if (mk_str_ends(line, MK_STR("\r")))
            line = mk_str_first(line, line.len - 1);
        mk_str value = line;
        if (l->has_trailing_comments)
            value = mk_str_first(value, mk_min(mk_str_find(value, '#'), mk_str_find(value, ';')));
        value = mk_str_trim(value);
        if (value.len == 0 || value.p[0] == '#')
            continue;
        l->at.column = (unsigned)(value.p - line.p) + 1;
        l->at.source = mk_str_first(line, 200);
        return value;
    }
    return MK_STR_NULL;
}

static struct lines lines_of(mk_str path, mk_str content, bool has_trailing_comments)
{
    return (struct lines){
        .rest = content, .at = {.file = path}, .has_trailing_comments = has_trailing_comments};
}

/* ---- Sharing ---- */

static struct mk_conf_list *find_list(const struct mk_condition_parser *p, const struct mk_conf_list *like)
{
    struct mk_conf_list *l = p->ctx->report->lists;
    while (l && !(l->arena == like->arena && l->kind == like->kind && l->nocase == like->nocase &&
                  mk_str_eq(l->path, like->path)))
        l = l->next;
    return l;
}

/* Returns the list that was read before, or a new one, whose set is built by `build`. NULL after reporting an
 * error. */
static struct mk_conf_list *get_list(struct mk_condition_parser *p, mk_str name, struct mk_conf_list like,
                                     bool (*build)(struct mk_condition_parser *p, struct mk_conf_list *l,
                                                   mk_str content))
{
    struct mk_buf content;
    like.arena = p->ctx->arena;
    like.path = mk_conf_ctx_path(p->ctx, name);
    if (!like.path.p)
        return NULL;
    struct mk_conf_list *l = find_list(p, &like);
    if (l)
        return l;
    l = mk_conf_ctx_alloc(p->ctx, sizeof *l);
    if (!l)
        return NULL;
    *l = like;
    mk_str text = read_list(p, name, like.path, &content);
    bool ok = text.p && build(p, l, text);
    mk_buf_free(&content);
    if (!ok)
        return NULL;
    l->next = p->ctx->report->lists;
    p->ctx->report->lists = l;
    return l;
}

/* ---- Networks ---- */

static size_t count_lines(mk_str content)
{
    size_t n = 1;
    for (mk_str rest = content; rest.p; n++)
        mk_str_cut(&rest, '\n');
    return n;
}

static bool parse_networks(struct mk_condition_parser *p, struct lines *lines, struct mk_network *out,
                           size_t *n)
{
    bool ok = true;
    mk_str value;
    p->line = &lines->at;
    while ((value = next_value(lines)).p)
        if (mk_network_parse(value, &out[*n]))
            ++*n;
        else
            ok = mk_condition_parser_error(p, value, "not an address or a network",
                                           MK_CONDITION_NETWORK_FORMS);
    p->line = NULL;
    return ok;
}

static bool build_networks(struct mk_condition_parser *p, struct mk_conf_list *l, mk_str content)
{
    struct lines lines = lines_of(l->path, content, true);
    size_t n = 0;
    struct mk_network *networks = mk_mem_alloc(count_lines(content) * sizeof *networks);
    bool ok = networks && parse_networks(p, &lines, networks, &n);
    void *memory = ok && n ? mk_conf_ctx_alloc(p->ctx, mk_network_set_size(n)) : NULL;
    if (memory)
        l->set = mk_network_set_build(memory, networks, NULL, n);
    if (!networks)
        p->ctx->report->no_memory = true;
    mk_mem_free(networks);
    return ok && (memory || !n);
}

bool mk_condition_file_add_networks(struct mk_condition_parser *p, mk_str name)
{
    struct mk_condition *c = p->condition;
    struct mk_conf_list *l = get_list(p, name, (struct mk_conf_list){.kind = LIST_NETWORKS}, build_networks);
    return l && mk_conf_ctx_append(p->ctx, &c->sets, &c->n_sets, &l->set, sizeof l->set);
}

/* ---- Texts ---- */

static bool report_glob_error(const struct mk_condition_parser *p, const struct mk_conf_list *l, mk_err e)
{
    struct mk_conf_source_pos at = {.file = l->path};
    if (e == -EFBIG)
        mk_conf_report_error(p->ctx->report, &at, "the values have more than %d characters together",
                             MK_GLOB_SET_MAX);
    return e == 0;
}

static bool build_texts(struct mk_condition_parser *p, struct mk_conf_list *l, mk_str content)
{
    mk_str copy = mk_arena_copy(p->ctx->arena, content), value;
    struct lines lines = lines_of(l->path, copy, false);
    struct mk_glob *globs = mk_mem_alloc(count_lines(content) * sizeof *globs);
    const struct mk_glob_set *set = NULL;
    size_t n = 0;
    mk_err e = copy.p && globs ? 0 : -ENOMEM;
    while (!e && (value = next_value(&lines)).p)
        globs[n++] = (struct mk_glob){.text = value, .is_substring = l->kind == LIST_SUBSTRINGS};
    if (!e)
        e = mk_glob_set_build(p->ctx->arena, globs, n, l->nocase, &set);
    mk_mem_free(globs);
    if (e == -ENOMEM)
        p->ctx->report->no_memory = true;
    l->set = set;
    return report_glob_error(p, l, e);
}

bool mk_condition_file_add_texts(struct mk_condition_parser *p, mk_str name, bool nocase)
{
    struct mk_condition *c = p->condition;
    bool has_substrings = p->is_substring || c->subject == MK_CONDITION_CONTAINS;
    struct mk_conf_list *l = get_list(
        p, name,
        (struct mk_conf_list){.kind = has_substrings ? LIST_SUBSTRINGS : LIST_GLOBS, .nocase = nocase},
        build_texts);
    return l && mk_conf_ctx_append(p->ctx, &c->globs, &c->n_globs, &l->set, sizeof l->set);
}

/* ---- Other values ---- */

bool mk_condition_file_add_values(struct mk_condition_parser *p, mk_str name)
{
    struct mk_buf content;
    mk_str path = mk_conf_ctx_path(p->ctx, name), value;
    mk_str text = path.p ? read_list(p, name, path, &content) : MK_STR_NULL;
    mk_str copy = text.p ? mk_arena_copy(p->ctx->arena, text) : MK_STR_NULL;
    struct lines lines = lines_of(path, copy, true);
    bool ok = copy.p;
    p->line = &lines.at;
    while (ok && (value = next_value(&lines)).p)
        ok = p->add_line(p, value);
    p->line = NULL;
    if (path.p)
        mk_buf_free(&content);
    return ok;
}
