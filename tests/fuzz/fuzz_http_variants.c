/* SPDX-License-Identifier: Apache-2.0 */
/* Every variant of a path is a path, not longer than it was, unlike the others, and read in the same way once
 * more. */
#include "http/path_variants.h"

#include "base/assert.h"
#include "base/mem.h"
#include "http/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_reading(mk_str path, unsigned how)
{
    char *room = mk_mem_alloc(path.len), *again = mk_mem_alloc(path.len);
    MK_ASSERT(room && again);
    mk_str read = mk_path_read(path, how, room);
    MK_ASSERT(read.len >= 1 && read.len <= path.len && read.p[0] == '/');
    for (size_t i = 0; i < read.len; i++) {
        MK_ASSERT(i == 0 || read.p[i] != '/' || read.p[i - 1] != '/');
        MK_ASSERT(!(how & MK_READ_TAILS) || read.p[i] != ';');
        MK_ASSERT(!(how & MK_READ_QUERY) || (read.p[i] && read.p[i] != '?' && read.p[i] != '#'));
        MK_ASSERT(!(how & MK_READ_SLASHES) || read.p[i] != '\\');
    }
    if (!(how & MK_READ_AUTHORITY))
        MK_ASSERT(mk_str_eq(mk_path_read(read, how, again), read));
    mk_mem_free(room);
    mk_mem_free(again);
}

static void check_variants(mk_str path, unsigned flags)
{
    struct mk_arena arena;
    mk_str list[MK_PATH_VARIANTS_MAX];
    bool has_slash = flags & MK_PATH_ENCODED_SLASH;
    mk_arena_init(&arena, NULL);
    size_t n;
    unsigned status = mk_path_variants(path, has_slash, &arena, list, &n);
    MK_ASSERT(status == 0 || (status == 414 && path.len > MK_PATH_VARIED_MAX && n == 0));
    MK_ASSERT(n <= MK_PATH_VARIANTS_MAX && (n == 0 || mk_path_may_vary(path, has_slash)));
    for (size_t i = 0; i < n; i++) {
        MK_ASSERT(list[i].len <= path.len && list[i].p[0] == '/' && !mk_str_eq(list[i], path));
        for (size_t k = 0; k < i; k++)
            MK_ASSERT(!mk_str_eq(list[i], list[k]));
    }
    mk_arena_fini(&arena);
}

/* A path that hides no dots stays in its folder, however it is read. */
static void check_dots(mk_str path)
{
    struct mk_arena arena;
    mk_str list[MK_PATH_VARIANTS_MAX], folder = MK_STR("/folder");
    char room[MK_PATH_VARIED_MAX];
    size_t n;
    if (path.len > sizeof room - folder.len || mk_path_hides_dots(path))
        return;
    memcpy(room, folder.p, folder.len);
    memcpy(room + folder.len, path.p, path.len);
    mk_arena_init(&arena, NULL);
    MK_ASSERT(mk_path_variants(mk_str_of(room, folder.len + path.len), true, &arena, list, &n) == 0);
    for (size_t i = 0; i < n; i++)
        MK_ASSERT(mk_str_starts(list[i], folder) &&
                  (list[i].len == folder.len || list[i].p[folder.len] == '/'));
    mk_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *room = mk_mem_alloc(size + 1);
    unsigned flags;
    mk_str path;
    if (room && mk_path_decode(mk_str_of((const char *)data, size), room, &path, &flags) == 0) {
        for (unsigned how = 0; how <= MK_READ_ALL; how++)
            check_reading(path, how);
        check_variants(path, flags);
        check_dots(path);
    }
    mk_mem_free(room);
    return 0;
}
