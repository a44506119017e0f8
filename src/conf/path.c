/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/path.h"

#include <stdlib.h>

/* Removes the next segment from the front of *rest, skipping "." and empty segments. False: no segment is
 * left. */
static bool next_path_segment(mk_str *rest, mk_str *step)
{
    while (rest->p) {
        *step = mk_str_cut(rest, '/');
        if (step->len && !mk_str_eq(*step, MK_STR(".")))
            return true;
    }
    return false;
}

/* Appends the segments of `path` to the `len` bytes in `buf`, and returns the new length. */
static size_t append_path_segments(char *buf, size_t len, mk_str path)
{
    mk_str step;
    while (next_path_segment(&path, &step)) {
        if (len && buf[len - 1] != '/')
            buf[len++] = '/';
        memcpy(buf + len, step.p, step.len);
        len += step.len;
    }
    return len;
}

mk_str mk_conf_path_resolve_in(struct mk_arena *a, mk_str folder, mk_str path)
{
    bool absolute = mk_str_starts(path, MK_STR("/"));
    if (absolute)
        folder = MK_STR("");
    char *buf = mk_arena_alloc(a, folder.len + path.len + 3);
    if (!buf)
        return MK_STR_NULL;
    size_t len = 0;
    if (absolute || mk_str_starts(folder, MK_STR("/")))
        buf[len++] = '/';
    len = append_path_segments(buf, len, folder);
    len = append_path_segments(buf, len, path);
    buf[len] = '\0';
    return mk_str_of(buf, len);
}

mk_str mk_conf_path_resolve(struct mk_arena *a, mk_str from, mk_str path)
{
    size_t slash = mk_str_find_last(from, '/');
    return mk_conf_path_resolve_in(a, slash == MK_STR_NONE ? MK_STR("") : mk_str_first(from, slash + 1),
                                   path);
}

bool mk_conf_path_is_pattern(mk_str path)
{
    return mk_str_find(path, '*') != MK_STR_NONE || mk_str_find(path, '?') != MK_STR_NONE ||
           mk_str_find(path, '[') != MK_STR_NONE;
}

static mk_str base_name(mk_str path)
{
    size_t slash = mk_str_find_last(path, '/');
    return slash == MK_STR_NONE ? path : mk_str_skip(path, slash + 1);
}

struct glob_results {
    struct mk_arena *arena;
    struct mk_conf_path_list *list;
    bool hidden, backups; /* does the pattern include hidden and backup files? */
    mk_err err;
};

static bool on_glob_match(void *data, mk_str path)
{
    struct glob_results *g = data;
    mk_str name = base_name(path);
    if ((!g->hidden && mk_str_starts(name, MK_STR("."))) || (!g->backups && mk_str_ends(name, MK_STR("~"))))
        return true;
    mk_str kept = mk_arena_copy(g->arena, path);
    if (!kept.p || !mk_arena_append(g->arena, &g->list->v, &g->list->n, &kept, sizeof kept)) {
        g->err = -ENOMEM;
        return false;
    }
    return g->list->n <= MK_CONF_FILES_MAX;
}

static int compare_paths(const void *a, const void *b)
{
    return mk_str_cmp(*(const mk_str *)a, *(const mk_str *)b);
}

mk_err mk_conf_path_glob(struct mk_arena *a, const struct mk_conf_io *io, mk_str pattern,
                         struct mk_conf_path_list *out)
{
    mk_str name = base_name(pattern);
    *out = (struct mk_conf_path_list){NULL, 0};
    struct glob_results g = {.arena = a,
                             .list = out,
                             .hidden = mk_str_starts(name, MK_STR(".")),
                             .backups = mk_str_ends(name, MK_STR("~"))};
    mk_err err = io->glob ? io->glob(io->ctx, pattern, on_glob_match, &g) : 0;
    if (out->n > 1)
        qsort(out->v, out->n, sizeof *out->v, compare_paths);
    return g.err ? g.err : err;
}
