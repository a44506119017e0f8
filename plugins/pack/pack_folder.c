/* SPDX-License-Identifier: Apache-2.0 */
#include "pack_folder.h"

#include <dirent.h>
#include <errno.h>
#include <monkey/mem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FOLDER_DEPTH_MAX = 64 };

struct folder_walk {
    struct pack_folder *folder;
    size_t root_len;
    unsigned depth;
    char **error_path;
};

char *pack_copy(const char *s, size_t len)
{
    char *copy = mk_mem_zalloc(1, len + 1);
    if (copy)
        memcpy(copy, s, len);
    return copy;
}

static char *join_path(const char *folder, const char *name)
{
    size_t a = strlen(folder), b = strlen(name);
    char *path = mk_mem_alloc(a + b + 2);
    if (path) {
        memcpy(path, folder, a);
        path[a] = '/';
        memcpy(path + a + 1, name, b + 1);
    }
    return path;
}

/* Passes ownership of the path to the caller, for the error message. Returns false. */
static bool fail_at_path(struct folder_walk *w, char *path)
{
    mk_mem_free(*w->error_path);
    *w->error_path = path;
    return false;
}

static bool add_file(struct folder_walk *w, char *path)
{
    struct pack_folder *f = w->folder;
    if (f->n == f->cap) {
        size_t cap = f->cap ? 2 * f->cap : 64;
        struct pack_file *more = mk_mem_realloc(f->files, cap * sizeof *more);
        if (!more)
            return fail_at_path(w, path);
        f->files = more;
        f->cap = cap;
    }
    f->files[f->n++] = (struct pack_file){.disk_path = path, .url_path = path + w->root_len};
    return true;
}

static bool walk_folder(struct folder_walk *w, const char *path);

/* Takes the path. */
static bool add_entry(struct folder_walk *w, char *path)
{
    struct stat link, target;
    if (lstat(path, &link) != 0 || stat(path, &target) != 0)
        return fail_at_path(w, path);
    if (S_ISREG(target.st_mode))
        return add_file(w, path);
    bool ok = true;
    if (S_ISDIR(link.st_mode)) {
        if (w->depth == FOLDER_DEPTH_MAX) {
            errno = ELOOP;
            return fail_at_path(w, path);
        }
        w->depth++;
        ok = walk_folder(w, path);
        w->depth--;
    }
    mk_mem_free(path);
    return ok;
}

static bool add_entries(struct folder_walk *w, const char *path, DIR *dir)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry)
            return errno == 0 || fail_at_path(w, pack_copy(path, strlen(path)));
        if (entry->d_name[0] == '.')
            continue;
        char *child = join_path(path, entry->d_name);
        if (!child || !add_entry(w, child))
            return false;
    }
}

static bool walk_folder(struct folder_walk *w, const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return fail_at_path(w, pack_copy(path, strlen(path)));
    bool ok = add_entries(w, path, dir);
    int e = errno;
    closedir(dir);
    errno = e;
    return ok;
}

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct pack_file *)a)->url_path, ((const struct pack_file *)b)->url_path);
}

bool pack_folder_list(struct pack_folder *f, const char *root, char **error_path)
{
    size_t len = strlen(root);
    while (len > 1 && root[len - 1] == '/')
        len--;
    char *trimmed = pack_copy(root, len);
    struct folder_walk w = {.folder = f, .root_len = len, .error_path = error_path};
    bool ok = trimmed && walk_folder(&w, trimmed);
    mk_mem_free(trimmed);
    if (f->n)
        qsort(f->files, f->n, sizeof *f->files, compare_files);
    return ok;
}

void pack_folder_free(struct pack_folder *f)
{
    for (size_t i = 0; i < f->n; i++)
        mk_mem_free(f->files[i].disk_path);
    mk_mem_free(f->files);
    *f = (struct pack_folder){0};
}

struct variant_key {
    const char *url_path, *suffix;
};

static int compare_variant(const void *key, const void *file)
{
    const struct variant_key *k = key;
    const char *path = ((const struct pack_file *)file)->url_path;
    size_t len = strlen(k->url_path);
    int order = strncmp(k->url_path, path, len);
    return order ? order : strcmp(k->suffix, path + len);
}

const struct pack_file *pack_folder_find(const struct pack_folder *f, const char *url_path,
                                         const char *suffix)
{
    return f->n ? bsearch(&(struct variant_key){url_path, suffix}, f->files, f->n, sizeof *f->files,
                          compare_variant)
                : NULL;
}
