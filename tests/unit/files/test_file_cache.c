/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/files/fixture.h"

#include "unit/child.h"

static void file_cache_keeps_small_files_in_memory(void **state)
{
    (void)state;
    struct mk_open_file *f = acquire_file("small");
    assert_int_equal(f->kind, MK_OPEN_FILE);
    assert_int_equal(f->fd, -1);
    assert_str(f->content, "0123456789");
    assert_int_equal(f->size, 10);
    assert_int_equal(cache.memory, 10);
    mk_open_file_release(f);
    f = acquire_file("empty");
    assert_non_null(f->content.p);
    assert_int_equal(f->content.len, 0);
    mk_open_file_release(f);
}

static void file_cache_keeps_large_files_open(void **state)
{
    (void)state;
    struct mk_open_file *f = acquire_file("large");
    assert_int_equal(f->kind, MK_OPEN_FILE);
    assert_true(f->fd >= 0);
    assert_null(f->content.p);
    assert_int_equal(f->size, 40);
    mk_open_file_release(f);
    assert_int_equal(cache.memory, 0);
}

static void file_cache_reports_the_kind_of_non_files(void **state)
{
    (void)state;
    assert_int_equal(mkfifoat(folder.fd, "fifo", 0600), 0);
    struct mk_open_file *f = acquire_file("dir"), *top = acquire_file(""), *fifo = acquire_file("fifo");
    assert_int_equal(f->kind, MK_OPEN_FOLDER);
    assert_int_equal(top->kind, MK_OPEN_FOLDER);
    assert_int_equal(fifo->kind, MK_OPEN_OTHER);
    assert_true(f->fd == -1 && top->fd == -1 && fifo->fd == -1);
    assert_true(f->size == 0 && fifo->size == 0);
    mk_open_file_release(f);
    mk_open_file_release(top);
    mk_open_file_release(fifo);
}

static void file_cache_does_not_cache_errors(void **state)
{
    (void)state;
    static char longest[PATH_MAX + 1];
    memset(longest, 'x', PATH_MAX);
    assert_int_equal(acquire_error("nothing"), -ENOENT);
    assert_int_equal(acquire_error("small/x"), -ENOTDIR);
    assert_int_equal(acquire_error(longest), -ENAMETOOLONG);
    assert_int_equal(cache.n, 0);
    folder_add(&folder, "nothing", MK_STR("something"));
    struct mk_open_file *f = acquire_file("nothing");
    assert_str(f->content, "something");
    mk_open_file_release(f);
}

/* ---- Rechecking ---- */

static void file_cache_entry_is_not_rechecked_within_the_interval(void **state)
{
    (void)state;
    const struct mk_open_file *f = find_file("small");
    folder_add(&folder, "small", MK_STR("changed"));
    now += RECHECK_MS - 1;
    assert_ptr_equal(find_file("small"), f);
    now += 1;
    struct mk_open_file *other = acquire_file("small");
    assert_str(other->content, "changed");
    mk_open_file_release(other);
    assert_int_equal(cache.n, 1);
    assert_int_equal(cache.memory, 7);
}

static void file_cache_recheck_keeps_an_unchanged_file(void **state)
{
    (void)state;
    static const char *const names[] = {"small", "large", "dir", ""};
    for (size_t i = 0; i < MK_LEN(names); i++) {
        struct mk_open_file *f = acquire_file(names[i]);
        now += RECHECK_MS;
        assert_ptr_equal(find_file(names[i]), f);
        folder_add(&folder, "large", MK_STR("shorter, but believed for another while"));
        assert_ptr_equal(find_file(names[i]), f);
        mk_open_file_release(f);
    }
}

static void check_seen(const char *what)
{
    struct mk_open_file *before = acquire_file("large");
    now += RECHECK_MS;
    struct mk_open_file *same = acquire_file("large");
    assert_ptr_equal(before, same);
    mk_open_file_release(same);
    struct stat st;
    char buffer[PATH_MAX];
    folder_path(&folder, "large", buffer);
    assert_int_equal(stat(buffer, &st), 0);
    if (strcmp(what, "size") == 0)
        assert_int_equal(truncate(buffer, 30), 0);
    else if (strcmp(what, "time") == 0)
        folder_set_time(&folder, "large", 1234567890);
    else if (strcmp(what, "inode") == 0)
        folder_add(&folder, "large", MK_STR("0123456789012345678901234567890123456789"));
    else /* chmod changes only the change time */
        assert_int_equal(chmod(buffer, 0600), 0);
    now += RECHECK_MS;
    struct mk_open_file *after = acquire_file("large");
    if (after == before)
        fail_msg("a change of %s was not seen", what);
    mk_open_file_release(after);
    mk_open_file_release(before);
}

static void file_cache_recheck_detects_every_change(void **state)
{
    (void)state;
    usleep(20000); /* the clock of the file system is coarse */
    check_seen("size");
    check_seen("time");
    check_seen("inode");
    usleep(20000);
    check_seen("mode");
}

static void file_cache_recheck_needs_no_descriptor(void **state)
{
    (void)state;
    static const char *const names[] = {"small", "large", "dir", "nothing"};
    int before = dup(0);
    close(before);
    for (int i = 0; i < 5; i++, now += RECHECK_MS)
        for (size_t j = 0; j < MK_LEN(names); j++) {
            struct mk_open_file *f;
            if (mk_file_cache_acquire(&cache, &root, mk_str_from_c(names[j]), now, &f) == 0)
                mk_open_file_release(f);
        }
    int after = dup(0);
    close(after);
    assert_int_equal(after, before + 1); /* the descriptor of the large file is open */
}

static void file_cache_recheck_drops_a_deleted_file(void **state)
{
    (void)state;
    struct mk_open_file *f = acquire_file("large");
    assert_int_equal(unlinkat(folder.fd, "large", 0), 0);
    now += RECHECK_MS;
    assert_int_equal(acquire_error("large"), -ENOENT);
    assert_int_equal(cache.n, 0);
    char buffer[64];
    assert_int_equal(pread(f->fd, buffer, sizeof buffer, 0), 40); /* a user of the entry can still read it */
    mk_open_file_release(f);
}

static void file_cache_separates_roots(void **state)
{
    (void)state;
    struct mk_root other = {.path = "other"};
    struct mk_open_file *a, *b;
    char buffer[PATH_MAX];
    folder_add(&folder, "dir/small", MK_STR("other"));
    assert_int_equal(mk_file_open_root(folder_path(&folder, "dir", buffer), &other.fd), 0);
    a = acquire_file("small");
    assert_int_equal(mk_file_cache_acquire(&cache, &other, MK_STR("small"), now, &b), 0);
    assert_str(a->content, "0123456789");
    assert_str(b->content, "other");
    mk_open_file_release(a);
    mk_open_file_release(b);
    mk_fd_close(&other.fd);
}

/* ---- Limits ---- */

static void file_cache_evicts_the_least_recently_used(void **state)
{
    (void)state;
    add_many(6);
    find_file("f0");
    find_file("f1");
    find_file("f2");
    find_file("f3");
    find_file("f0");
    now += RECHECK_MS;
    find_file("f4");
    assert_int_equal(cache.n, 4);
    assert_true(is_listed("f0") && is_listed("f2") && is_listed("f3") && is_listed("f4"));
    find_file("f5");
    assert_true(is_listed("f0") && is_listed("f3") && is_listed("f4") && is_listed("f5"));
}

static void file_cache_recheck_counts_as_use(void **state)
{
    (void)state;
    add_many(5);
    find_file("f0");
    find_file("f1");
    find_file("f2");
    find_file("f3");
    now += RECHECK_MS;
    find_file("f0");
    find_file("f4");
    assert_true(is_listed("f0"));
    assert_false(is_listed("f1"));
}

static void file_cache_memory_goes_to_the_first_files(void **state)
{
    (void)state;
    init_with(
        (struct mk_file_cache_limits){.files = 100, .memory = 35, .small = 20, .recheck_ms = RECHECK_MS});
    add_many(6);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 6; i++) {
            const struct mk_open_file *f = find_file(nth(i));
            assert_int_equal(f->content.p != NULL, i < 3);
            assert_int_equal(f->fd >= 0, i >= 3);
            now++;
        }
    }
    assert_int_equal(cache.n, 6);
    assert_int_equal(cache.memory, 30);
}

static void file_cache_cyclic_use_keeps_memory_on_recheck(void **state)
{
    (void)state;
    init_with(
        (struct mk_file_cache_limits){.files = 100, .memory = 35, .small = 20, .recheck_ms = RECHECK_MS});
    add_many(6);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 6; i++)
            assert_int_equal(find_file(nth(i))->content.p != NULL, i < 3);
        now += RECHECK_MS;
    }
}

static void file_cache_used_file_takes_memory_of_unused_files(void **state)
{
    (void)state;
    init_with(
        (struct mk_file_cache_limits){.files = 100, .memory = 35, .small = 20, .recheck_ms = RECHECK_MS});
    add_many(6);
    for (unsigned i = 0; i < 6; i++, now++)
        find_file(nth(i));
    now += RECHECK_MS;
    find_file("f2");
    const struct mk_open_file *f = find_file("f4");
    assert_non_null(f->content.p);
    assert_int_equal(f->fd, -1);
    assert_false(is_listed("f0"));
    assert_true(is_listed("f1") && is_listed("f2"));
    assert_non_null(find_file("f5")->content.p);
    assert_null(find_file("f3")->content.p); /* all files in memory are in use */
    assert_int_equal(cache.memory, 30);
}

/* A frequently used file moves into memory, however long the recheck interval is. */
static void file_cache_frequently_used_files_stay_in_memory(void **state)
{
    (void)state;
    init_with((struct mk_file_cache_limits){.files = 100, .memory = 35, .small = 20, .recheck_ms = 3600000});
    add_many(6);
    for (unsigned i = 0; i < 6; i++, now++)
        find_file(nth(i));
    now += 998;
    assert_null(find_file("f5")->content.p);
    now += 1;
    assert_non_null(find_file("f5")->content.p);
    assert_int_equal(cache.memory, 30);
}

static void file_cache_changed_file_keeps_its_memory(void **state)
{
    (void)state;
    init_with(
        (struct mk_file_cache_limits){.files = 100, .memory = 35, .small = 20, .recheck_ms = RECHECK_MS});
    add_many(4);
    for (unsigned i = 0; i < 4; i++)
        find_file(nth(i));
    folder_add(&folder, "f1", MK_STR("other ten."));
    now += RECHECK_MS;
    for (unsigned i = 0; i < 3; i++)
        assert_non_null(find_file(nth(i))->content.p);
    assert_str(find_file("f1")->content, "other ten.");
    folder_add(&folder, "f1", MK_STR("now it is 16 long"));
    now += RECHECK_MS;
    find_file("f0");
    find_file("f2");
    assert_null(find_file("f1")->content.p); /* the other files are in use, and f1 no longer fits */
    assert_int_equal(cache.memory, 20);
}

static void file_cache_file_above_the_memory_limit_is_open(void **state)
{
    (void)state;
    init_with((struct mk_file_cache_limits){.files = 100, .memory = 15, .small = 20});
    folder_add(&folder, "sixteen", MK_STR("0123456789abcdef"));
    find_file("small");
    const struct mk_open_file *f = find_file("sixteen");
    assert_null(f->content.p);
    assert_true(f->fd >= 0);
    assert_int_equal(cache.memory, 10);
    assert_true(is_listed("small")); /* "sixteen" evicted nothing from the cache */
}

static void file_cache_cyclic_use_beyond_capacity_does_not_thrash(void **state)
{
    (void)state;
    init_with((struct mk_file_cache_limits){.files = 20, .memory = 0, .recheck_ms = RECHECK_MS});
    add_many(60);
    found_of(60);
    unsigned found = 0;
    for (unsigned round = 0; round < 5; round++)
        found += found_of(60);
    assert_int_equal(cache.n, 20);
    assert_true(found >= 5 * 10); /* with strict LRU eviction, no file would be found */
}

static void file_cache_new_file_is_soon_cached(void **state)
{
    (void)state;
    init_with((struct mk_file_cache_limits){.files = 4, .memory = 0, .recheck_ms = RECHECK_MS});
    add_many(5);
    found_of(4);
    unsigned n_requests = 0;
    for (; !is_listed("f4"); n_requests++)
        find_file("f4");
    assert_true(n_requests > 1 && n_requests <= 16);
}

static mk_err acquire_kept(const char *path)
{
    struct mk_open_file *f = NULL;
    mk_err e = mk_file_cache_acquire_if_cacheable(&cache, &root, mk_str_from_c(path), now, &f);
    if (!e)
        mk_open_file_release(f);
    return e;
}

static void file_cache_uncacheable_file_is_not_opened(void **state)
{
    (void)state;
    init_with((struct mk_file_cache_limits){.files = 2, .recheck_ms = RECHECK_MS});
    assert_int_equal(acquire_kept("dir"), 0);
    assert_true(is_listed("dir"));
    find_file("small");
    assert_int_equal(acquire_kept("large"), -EAGAIN);
    assert_int_equal(acquire_kept("dir"), 0);
    now += RECHECK_MS;
    assert_int_equal(acquire_kept("large"), 0);
    init_with((struct mk_file_cache_limits){.files = 0});
    assert_int_equal(acquire_kept("large"), -EAGAIN);
}

static void file_cache_of_size_0_keeps_nothing(void **state)
{
    (void)state;
    static const struct mk_file_cache_limits limits = {
        .files = 0, .memory = 100, .small = 20, .recheck_ms = 1000};
    mk_file_cache_fini(&cache);
    init_cache(&limits);
    struct mk_open_file *a = acquire_file("small"), *b = acquire_file("small");
    assert_ptr_not_equal(a, b);
    assert_int_equal(cache.n, 0);
    mk_open_file_release(a);
    mk_open_file_release(b);
}

static void file_cache_references_outlive_eviction(void **state)
{
    (void)state;
    add_many(6);
    struct mk_open_file *f = acquire_file("f0"), *large = acquire_file("large");
    now += RECHECK_MS;
    for (unsigned i = 1; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        find_file(name);
    }
    assert_false(f->listed);
    assert_false(large->listed);
    assert_str(f->content, "ten bytes.");
    assert_true(large->fd >= 0);
    mk_open_file_release(f);
    mk_open_file_release(large);
}

static void file_cache_references_outlive_the_cache(void **state)
{
    (void)state;
    struct mk_open_file *f = acquire_file("small"), *large = acquire_file("large");
    mk_file_cache_fini(&cache);
    assert_str(f->content, "0123456789");
    char buffer[64];
    assert_int_equal(pread(large->fd, buffer, sizeof buffer, 0), 40);
    mk_open_file_release(f);
    mk_open_file_release(large);
    init_cache(&usual);
}

static void drop(void *f)
{
    mk_open_file_release(f);
}

static void file_cache_release_without_reference_aborts(void **state)
{
    (void)state;
    struct mk_open_file f = {.refs = 0};
    assert_aborts(drop, &f, "refs > 0");
}

/* ---- Invalidating and evicting ---- */

static void file_cache_invalidated_file_is_reopened(void **state)
{
    (void)state;
    struct mk_open_file *f = acquire_file("small");
    mk_file_cache_invalidate(f);
    assert_int_equal(cache.n, 0);
    mk_file_cache_invalidate(f);
    struct mk_open_file *again = acquire_file("small");
    assert_ptr_not_equal(f, again);
    assert_str(f->content, "0123456789");
    mk_open_file_release(f);
    mk_open_file_release(again);
    assert_int_equal(cache.n, 1);
}

static void file_cache_close_idle_closes_idle_descriptors(void **state)
{
    (void)state;
    folder_add(&folder, "large2", MK_STR("0123456789012345678901234567890123456789"));
    find_file("small");
    find_file("large");
    struct mk_open_file *used = acquire_file("large2");
    assert_int_equal(mk_file_cache_close_idle_fds(&cache), 1);
    assert_true(is_listed("small") && is_listed("large2"));
    assert_false(is_listed("large"));
    assert_int_equal(mk_file_cache_close_idle_fds(&cache), 0);
    mk_open_file_release(used);
    assert_int_equal(mk_file_cache_close_idle_fds(&cache), 1);
}

static void file_cache_evict_idle_keeps_used_files(void **state)
{
    (void)state;
    find_file("small");
    find_file("large");
    struct mk_open_file *used = acquire_file("dir/file");
    mk_file_cache_evict_idle(&cache);
    assert_false(is_listed("small") || is_listed("large"));
    assert_int_equal(cache.n, 1);
    mk_open_file_release(used);
    mk_file_cache_evict_idle(&cache);
    assert_int_equal(cache.n, 0);
    assert_int_equal(cache.memory, 0);
}

static void file_cache_without_descriptors_closes_idle_files(void **state)
{
    (void)state;
    struct rlimit before, none;
    find_file("large");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    int next = dup(0);
    close(next);
    none.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct mk_open_file *f = NULL, *other = NULL;
    mk_err first = mk_file_cache_acquire(&cache, &root, MK_STR("dir/file"), now, &f);
    int holder = dup(0);
    mk_err second = mk_file_cache_acquire(&cache, &root, MK_STR("small"), now, &other);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(holder);
    assert_int_equal(first, 0);
    assert_int_equal(second, -EMFILE);
    assert_false(is_listed("large"));
    mk_open_file_release(f);
}

/* Adds more files than there are initial buckets. */
static void file_cache_finds_many_files(void **state)
{
    (void)state;
    enum { MANY = 300 };
    char name[16];
    mk_file_cache_fini(&cache);
    init_cache(&(struct mk_file_cache_limits){
        .files = MANY, .memory = 1 << 16, .small = 20, .recheck_ms = RECHECK_MS});
    size_t buckets = cache.n_buckets;
    for (int i = 0; i < 2 * MANY; i++) {
        snprintf(name, sizeof name, "%d", i % MANY);
        if (i < MANY)
            folder_add(&folder, name, mk_str_from_c(name));
        struct mk_open_file *f = acquire_file(name);
        assert_str(f->content, name);
        assert_int_equal(f->refs, 2); /* the cache holds the other reference */
        mk_open_file_release(f);
    }
    assert_int_equal(cache.n, MANY);
    assert_true(cache.n_buckets > buckets && cache.n_buckets >= MANY);
    mk_file_cache_evict_idle(&cache);
    assert_int_equal(cache.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(file_cache_keeps_small_files_in_memory, setup, teardown),
        fixture_test(file_cache_finds_many_files, setup, teardown),
        fixture_test(file_cache_keeps_large_files_open, setup, teardown),
        fixture_test(file_cache_reports_the_kind_of_non_files, setup, teardown),
        fixture_test(file_cache_does_not_cache_errors, setup, teardown),
        fixture_test(file_cache_entry_is_not_rechecked_within_the_interval, setup, teardown),
        fixture_test(file_cache_recheck_keeps_an_unchanged_file, setup, teardown),
        fixture_test(file_cache_recheck_detects_every_change, setup, teardown),
        fixture_test(file_cache_recheck_needs_no_descriptor, setup, teardown),
        fixture_test(file_cache_recheck_drops_a_deleted_file, setup, teardown),
        fixture_test(file_cache_separates_roots, setup, teardown),
        fixture_test(file_cache_evicts_the_least_recently_used, setup, teardown),
        fixture_test(file_cache_recheck_counts_as_use, setup, teardown),
        fixture_test(file_cache_memory_goes_to_the_first_files, setup, teardown),
        fixture_test(file_cache_cyclic_use_keeps_memory_on_recheck, setup, teardown),
        fixture_test(file_cache_used_file_takes_memory_of_unused_files, setup, teardown),
        fixture_test(file_cache_frequently_used_files_stay_in_memory, setup, teardown),
        fixture_test(file_cache_changed_file_keeps_its_memory, setup, teardown),
        fixture_test(file_cache_file_above_the_memory_limit_is_open, setup, teardown),
        fixture_test(file_cache_cyclic_use_beyond_capacity_does_not_thrash, setup, teardown),
        fixture_test(file_cache_new_file_is_soon_cached, setup, teardown),
        fixture_test(file_cache_uncacheable_file_is_not_opened, setup, teardown),
        fixture_test(file_cache_of_size_0_keeps_nothing, setup, teardown),
        fixture_test(file_cache_references_outlive_eviction, setup, teardown),
        fixture_test(file_cache_references_outlive_the_cache, setup, teardown),
        fixture_test(file_cache_release_without_reference_aborts, setup, teardown),
        fixture_test(file_cache_invalidated_file_is_reopened, setup, teardown),
        fixture_test(file_cache_close_idle_closes_idle_descriptors, setup, teardown),
        fixture_test(file_cache_evict_idle_keeps_used_files, setup, teardown),
        fixture_test(file_cache_without_descriptors_closes_idle_files, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
