/* SPDX-License-Identifier: Apache-2.0 */
/* Each variant of a path is a valid path, not longer than the original, distinct, and parses to itself. */
#include "http/path_variants.h"

#include "base/assert.h"
#include "base/mem.h"
#include "http/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_reading(mk_str path, unsigned how)
{
    char *buffer = mk_mem_alloc(path.len), *again = mk_mem_alloc(path.len);
    MK_ASSERT(buffer && again);
    mk_str read = mk_path_interpret(path, how, buffer);
    MK_ASSERT(read.len >= 1 && read.len <= path.len && read.p[0] == '/');
    for (size_t i = 0; i < read.len; i++) {
        MK_ASSERT(i == 0 || read.p[i] != '/' || read.p[i - 1] != '/');
        MK_ASSERT(!(how & MK_PATH_READING_TAILS) || read.p[i] != ';');
        MK_ASSERT(!(how & MK_PATH_READING_QUERY) || (read.p[i] && read.p[i] != '?' && read.p[i] != '#'));
        MK_ASSERT(!(how & MK_PATH_READING_SLASHES) || read.p[i] != '\\');
    }
    if (!(how & MK_PATH_READING_AUTHORITY))
        MK_ASSERT(mk_str_eq(mk_path_interpret(read, how, again), read));
    mk_mem_free(buffer);
    mk_mem_free(again);
}

static void check_variants(mk_str path, unsigned flags)
{
    static const mk_str endings[] = {MK_STR_INIT(".x")};
    static const struct mk_path_scripts scripts = {endings, 1, MK_STR_INIT("y")};
    struct mk_arena arena;
    struct mk_path_variants v;
    bool has_slash = flags & MK_PATH_ENCODED_SLASH;
    mk_arena_init(&arena, NULL);
    unsigned status = mk_path_variants(path, has_slash, &scripts, &arena, &v);
    MK_ASSERT(status == 0 || ((status == 414 || status == 400) && v.n == 0));
    MK_ASSERT(path.len <= MK_PATH_VARIED_MAX || v.n == 0);
    MK_ASSERT(v.n <= MK_PATH_VARIANTS_MAX && (v.n == 0 || mk_path_may_vary(path, has_slash, &scripts)));
    for (size_t i = 0; i < v.n; i++) {
        MK_ASSERT(v.list[i].len <= path.len && v.list[i].p[0] == '/' && !mk_str_eq(v.list[i], path));
        for (size_t k = 0; k < i; k++)
            MK_ASSERT(!mk_str_eq(v.list[i], v.list[k]));
    }
    mk_arena_fini(&arena);
}

/* A path without hidden dots must stay in its folder, however it is parsed. */
static void check_dots(mk_str path)
{
    struct mk_arena arena;
    struct mk_path_variants v;
    mk_str folder = MK_STR("/folder");
    char buffer[MK_PATH_VARIED_MAX];
    if (path.len > sizeof buffer - folder.len || mk_path_hides_dot_segments(path))
        return;
    memcpy(buffer, folder.p, folder.len);
    memcpy(buffer + folder.len, path.p, path.len);
    mk_arena_init(&arena, NULL);
    mk_str whole = mk_str_of(buffer, folder.len + path.len);
    if (mk_path_variants(whole, true, NULL, &arena, &v))
        v.n_readings = 0;
    for (size_t i = 0; i < v.n_readings; i++)
        MK_ASSERT(mk_str_starts(v.list[i], folder) &&
                  (v.list[i].len == folder.len || v.list[i].p[folder.len] == '/'));
    mk_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *buffer = mk_mem_alloc(size + 1);
    unsigned flags;
    mk_str path;
    if (buffer && mk_path_decode(mk_str_of((const char *)data, size), buffer, &path, &flags) == 0) {
        for (unsigned how = 0; how <= MK_PATH_READING_ALL; how++)
            check_reading(path, how);
        check_variants(path, flags);
        check_dots(path);
    }
    mk_mem_free(buffer);
    return 0;
}
