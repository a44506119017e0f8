/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with a few files, and a small file cache. */
#ifndef MK_UNIT_FILES_FIXTURE_H
#define MK_UNIT_FILES_FIXTURE_H

#include "files/file_cache.h"

#include <sys/resource.h>

#include "unit/folder.h"
#include "unit/test.h"

enum { RECHECK_MS = 1000 };

static const struct mk_file_cache_limits usual = {
    .files = 4, .memory = 100, .small = 20, .recheck_ms = RECHECK_MS};

static struct folder folder;
static struct mk_root root;
static struct mk_file_cache cache;
static uint64_t now = 5000;

static inline void init_cache(const struct mk_file_cache_limits *limits)
{
    assert_int_equal(mk_file_cache_init(&cache, limits), 0);
}

static inline void setup(void)
{
    folder_setup(&folder);
    folder_add_folder(&folder, "dir");
    folder_add(&folder, "small", MK_STR("0123456789"));
    folder_add(&folder, "large", MK_STR("0123456789012345678901234567890123456789"));
    folder_add(&folder, "empty", MK_STR(""));
    folder_add(&folder, "dir/file", MK_STR("in dir"));
    root = (struct mk_root){.fd = folder.fd, .path = folder.path};
    init_cache(&usual);
}

static inline void teardown(void)
{
    mk_file_cache_fini(&cache);
}

static inline struct mk_open_file *acquire_file(const char *path)
{
    struct mk_open_file *f = NULL;
    mk_err e = mk_file_cache_acquire(&cache, &root, mk_str_from_c(path), now, &f);
    if (e)
        fail_msg("%s: %s", path, mk_err_text(e));
    assert_true(f->refs >= 1);
    assert_ptr_equal(f->root, &root);
    assert_str(mk_open_file_path(f), path);
    return f;
}

/* Returns the cached file, already released: the caller may only compare the pointer. */
static inline const struct mk_open_file *find_file(const char *path)
{
    struct mk_open_file *f = acquire_file(path);
    mk_open_file_release(f);
    return f;
}

static inline mk_err acquire_error(const char *path)
{
    struct mk_open_file *f = NULL;
    return mk_file_cache_acquire(&cache, &root, mk_str_from_c(path), now, &f);
}

static inline void add_many(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        folder_add(&folder, name, MK_STR("ten bytes."));
    }
}

static inline bool is_in(struct mk_list *list, const char *path)
{
    MK_LIST_EACH_SAFE (at, list)
        if (mk_str_eq(mk_open_file_path(MK_LIST_ENTRY(at, struct mk_open_file, used)), mk_str_from_c(path)))
            return true;
    return false;
}

/* Returns whether the file is still cached, without changing the LRU order. */
static inline bool is_listed(const char *path)
{
    return is_in(&cache.rich, path) || is_in(&cache.lean, path);
}

static inline void init_with(struct mk_file_cache_limits limits)
{
    mk_file_cache_fini(&cache);
    init_cache(&limits);
}

static inline const char *nth(unsigned i)
{
    static char name[16];
    snprintf(name, sizeof name, "f%u", i);
    return name;
}

static inline unsigned found_of(unsigned n)
{
    unsigned found = 0;
    for (unsigned i = 0; i < n; i++) {
        bool was = is_listed(nth(i));
        find_file(nth(i));
        found += was;
    }
    return found;
}

#endif
