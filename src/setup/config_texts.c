/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/config_texts.h"

#include "base/mem.h"
#include "base/num.h"
#include "os/path_glob.h"
#include "setup/conf_disk_io.h"
#include "setup/config_loader.h"
#include "setup/config_reader.h"

struct mk_config_texts *mk_config_texts_new(void)
{
    struct mk_config_texts *t = mk_mem_zalloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->n_refs = 1;
    mk_arena_init(&t->arena, NULL);
    mk_map_init(&t->by_path, &t->arena);
    t->end = &t->first;
    return t;
}

struct mk_config_texts *mk_config_texts_ref(struct mk_config_texts *t)
{
    if (t)
        t->n_refs++;
    return t;
}

void mk_config_texts_unref(struct mk_config_texts *t)
{
    if (!t || --t->n_refs)
        return;
    mk_arena_fini(&t->arena);
    mk_mem_free(t);
}

static const struct mk_config_text *find_text(const struct mk_config_texts *t, mk_str path)
{
    return mk_map_get(&t->by_path, path);
}

/* A file that is included twice is added once. The arena records a failure. */
static void add_text(struct mk_config_texts *t, mk_str path, mk_str text)
{
    struct mk_config_text *added = find_text(t, path) ? NULL : mk_arena_zalloc(&t->arena, 1, sizeof *added);
    if (!added)
        return;
    added->path = mk_arena_copy(&t->arena, path);
    added->text = mk_arena_copy(&t->arena, text);
    if (!added->path.p || !added->text.p || !mk_map_put(&t->by_path, added->path, added))
        return;
    t->n_bytes += text.len;
    *t->end = added;
    t->end = &added->next;
}

/* ---- Recording ---- */

static mk_err read_and_record(void *ctx, mk_str path, struct mk_buf *out)
{
    size_t start = out->len;
    mk_err e = mk_conf_disk_io.read(NULL, path, out);
    if (!e && !out->failed)
        add_text(ctx, path, mk_str_skip(mk_buf_str(out), start));
    return e;
}

void mk_config_texts_record(struct mk_config_texts *t, struct mk_config_source *source)
{
    t->io = mk_conf_disk_io;
    t->io.read = read_and_record;
    t->io.ctx = t;
    source->io = &t->io;
    source->folder = NULL;
}

bool mk_config_texts_end_recording(struct mk_config_texts *t, const struct mk_config_generation *g)
{
    t->folder = mk_arena_copy(&t->arena, g->folder);
    return t->folder.p && t->first && !t->arena.failed;
}

bool mk_config_texts_read(struct mk_config_texts *t, const struct mk_config_source *source)
{
    struct mk_config_source recorded = *source;
    struct mk_conf_report report;
    struct mk_config_generation *g = mk_mem_zalloc(1, sizeof *g);
    struct mk_config_loader l = {.g = g, .origin = &recorded, .report = &report, .end = g ? &g->sites : NULL};
    if (!g)
        return false;
    mk_arena_init(&g->arena, NULL);
    mk_conf_report_init(&report, &g->arena);
    mk_config_texts_record(t, &recorded);
    source->reader->read(&l);
    bool ok = g->folder.p && mk_config_texts_end_recording(t, g);
    mk_arena_fini(&g->arena);
    mk_mem_free(g);
    return ok;
}

/* ---- Replaying ---- */

static mk_err read_text(void *ctx, mk_str path, struct mk_buf *out)
{
    const struct mk_config_text *found = find_text(ctx, path);
    if (found)
        mk_buf_add(out, found->text);
    return found ? 0 : -ENOENT;
}

static bool text_exists(void *ctx, mk_str path)
{
    return find_text(ctx, path);
}

/* Compares component by component, because no wildcard matches a slash. */
static bool path_matches(mk_str pattern, mk_str path)
{
    while (pattern.len && path.len) {
        bool more = mk_str_find(pattern, '/') != MK_STR_NONE;
        if (more != (mk_str_find(path, '/') != MK_STR_NONE) ||
            !mk_path_glob_matches(mk_str_cut(&pattern, '/'), mk_str_cut(&path, '/')))
            return false;
    }
    return !pattern.len && !path.len;
}

/* A file that matched the pattern when the texts were recorded was read, so it is among the texts. */
static mk_err glob_texts(void *ctx, mk_str pattern, bool (*found)(void *data, mk_str path), void *data)
{
    const struct mk_config_texts *t = ctx;
    for (const struct mk_config_text *text = t->first; text; text = text->next)
        if (path_matches(pattern, text->path) && !found(data, text->path))
            break;
    return 0;
}

void mk_config_texts_replay(struct mk_config_texts *t, struct mk_config_source *source)
{
    t->io = (struct mk_conf_io){
        .read = read_text, .glob = glob_texts, .env = mk_conf_disk_io.env, .exists = text_exists, .ctx = t};
    source->io = &t->io;
    source->path = t->first->path.p;
    source->folder = t->folder.p;
}

bool mk_config_texts_equal(const struct mk_config_texts *a, const struct mk_config_texts *b)
{
    const struct mk_config_text *x = a->first, *y = b->first;
    for (; x && y; x = x->next, y = y->next)
        if (!mk_str_eq(x->path, y->path) || !mk_str_eq(x->text, y->text))
            return false;
    return !x && !y && mk_str_eq(a->folder, b->folder);
}

/* ---- Encoding ---- */

/* A line with the sizes, then the path and the text. */
static void encode_text(struct mk_buf *out, mk_str path, mk_str text)
{
    mk_buf_addf(out, "%zu %zu\n", path.len, text.len);
    mk_buf_add(out, path);
    mk_buf_add_char(out, '\n');
    mk_buf_add(out, text);
    mk_buf_add_char(out, '\n');
}

void mk_config_texts_encode(const struct mk_config_texts *t, struct mk_buf *out)
{
    encode_text(out, t->folder, MK_STR(""));
    for (const struct mk_config_text *text = t->first; text; text = text->next)
        encode_text(out, text->path, text->text);
}

static bool cut_bytes(mk_str *rest, mk_str size, mk_str *out)
{
    uint64_t n;
    if (!mk_num_parse(size, &n) || n >= rest->len || rest->p[n] != '\n')
        return false;
    *out = mk_str_first(*rest, (size_t)n);
    *rest = mk_str_skip(*rest, (size_t)n + 1);
    return true;
}

static bool decode_text(mk_str *rest, mk_str *path, mk_str *text)
{
    mk_str sizes = mk_str_cut(rest, '\n'), path_size = mk_str_cut(&sizes, ' ');
    return cut_bytes(rest, path_size, path) && cut_bytes(rest, sizes, text) && path->len &&
           path->p[0] == '/' && mk_str_find(*path, '\0') == MK_STR_NONE;
}

bool mk_config_texts_decode(struct mk_config_texts *t, mk_str encoded)
{
    mk_str path, text;
    if (!decode_text(&encoded, &path, &text))
        return false;
    t->folder = mk_arena_copy(&t->arena, path);
    while (encoded.len) {
        if (!decode_text(&encoded, &path, &text))
            return false;
        add_text(t, path, text);
    }
    return t->first && t->folder.p && !t->arena.failed;
}
