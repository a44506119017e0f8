/* SPDX-License-Identifier: Apache-2.0 */
#include "files/sibling_suffixes.h"

#include "base/mem.h"
#include "os/fd.h"
#include "os/folder.h"

enum {
    NAMES_MAX = 1024, /* a larger folder is not read: other requests would have to wait */
    /* A folder is read only if it has been unchanged for longer than this: two changes within the time
     * resolution of the file system have the same time stamp. */
    SETTLED_SECONDS = 3,
    /* The suffixes are reused for this long: some file systems do not report that a folder changed. */
    TRUSTED_MS = 60 * 1000
};

/* The suffixes found in a folder, attached to its entry in the file cache. */
struct suffixes {
    struct mk_open_file_attachment note;
    uint32_t found;
    bool was_looked_up, read, too_large;
    uint64_t read_ms;
};

struct suffix_search {
    const mk_str *suffixes;
    unsigned n;
    uint32_t found;
};

static void free_suffixes(struct mk_open_file_attachment *note)
{
    mk_mem_free(MK_CONTAINER(note, struct suffixes, note));
}

/* Compares case-insensitively, as some file systems do. */
static bool has_suffix(mk_str name, mk_str suffix)
{
    return name.len >= suffix.len && mk_str_eq_nocase(mk_str_skip(name, name.len - suffix.len), suffix);
}

static void on_file_name(mk_str name, void *data)
{
    struct suffix_search *s = data;
    for (unsigned i = 0; i < s->n; i++)
        if (has_suffix(name, s->suffixes[i]))
            s->found |= UINT32_C(1) << i;
}

/* Has the folder been unchanged for more than SETTLED_SECONDS? Tools that copy folders may restore the
 * modification time, but not the change time. */
static bool is_folder_settled(const struct mk_open_file *folder, int64_t now)
{
    int64_t changed = folder->mtime_ns > folder->ctime_ns ? folder->mtime_ns : folder->ctime_ns;
    return changed / 1000000000 + SETTLED_SECONDS < now;
}

/* Is `fd`, which was opened by path, still the folder of this entry? */
static bool is_same_folder(const struct mk_open_file *folder, int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && mk_open_file_is_inode(folder, &st);
}

static mk_err scan_names(const struct mk_open_file *folder, struct suffix_search *s)
{
    int fd;
    mk_err e = mk_file_cache_open_uncached(folder->cache, folder->root, mk_open_file_path(folder), &fd);
    if (e)
        return e;
    e = is_same_folder(folder, fd) ? mk_folder_list(fd, NAMES_MAX, on_file_name, s) : -ESTALE;
    mk_fd_close(&fd);
    return e;
}

/* If reading fails, all suffixes count as found until TRUSTED_MS have passed. */
static void scan_folder(struct suffixes *e, const struct mk_open_file *folder, const mk_str *suffixes,
                        unsigned n, uint64_t now_ms)
{
    struct suffix_search s = {.suffixes = suffixes, .n = n};
    mk_err err = scan_names(folder, &s);
    e->too_large = err == -E2BIG;
    e->found = err ? UINT32_MAX : s.found;
    e->read = true;
    e->read_ms = now_ms;
}

static struct suffixes *get_folder_suffixes(struct mk_open_file *folder)
{
    if (folder->note)
        return MK_CONTAINER(folder->note, struct suffixes, note);
    struct suffixes *e = mk_mem_zalloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->note.free = free_suffixes;
    mk_file_cache_attach(folder, &e->note, sizeof *e);
    return e;
}

/* The first lookup does not read the folder: that is not worthwhile for a single lookup. */
static uint32_t find_suffixes(struct mk_open_file *folder, const mk_str *suffixes, unsigned n,
                              uint64_t now_ms, int64_t now)
{
    struct suffixes *e = folder->kind == MK_OPEN_FOLDER ? get_folder_suffixes(folder) : NULL;
    if (!e)
        return UINT32_MAX;
    bool believed = e->too_large || (e->read && now_ms - e->read_ms < TRUSTED_MS);
    if (!believed && e->was_looked_up && is_folder_settled(folder, now))
        scan_folder(e, folder, suffixes, n, now_ms);
    e->was_looked_up = true;
    return e->read ? e->found : UINT32_MAX;
}

static mk_str parent_folder(mk_str path)
{
    size_t slash = mk_str_find_last(path, '/');
    return mk_str_first(path, slash < path.len ? slash : 0);
}

uint32_t mk_sibling_suffixes_find(const struct mk_open_file *file, const mk_str *suffixes, unsigned n,
                                  uint64_t now_ms, int64_t now)
{
    struct mk_open_file *folder;
    if (!file->listed ||
        mk_file_cache_acquire_if_cacheable(file->cache, file->root, parent_folder(mk_open_file_path(file)),
                                           now_ms, &folder))
        return UINT32_MAX;
    uint32_t found = find_suffixes(folder, suffixes, n, now_ms, now);
    mk_open_file_release(folder);
    return found;
}
