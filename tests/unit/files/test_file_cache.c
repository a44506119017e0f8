/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/opened.h"

#include "unit/death.h"

static void small_files_are_in_memory(void **state)
{
    (void)state;
    struct mk_open_file *f = take("small");
    assert_int_equal(f->kind, MK_OPEN_FILE);
    assert_int_equal(f->fd, -1);
    assert_str(f->content, "0123456789");
    assert_int_equal(f->size, 10);
    assert_int_equal(cache.memory, 10);
    mk_open_file_release(f);
    f = take("empty");
    assert_non_null(f->content.p);
    assert_int_equal(f->content.len, 0);
    mk_open_file_release(f);
}

static void large_files_are_open(void **state)
{
    (void)state;
    struct mk_open_file *f = take("large");
    assert_int_equal(f->kind, MK_OPEN_FILE);
    assert_true(f->fd >= 0);
    assert_null(f->content.p);
    assert_int_equal(f->size, 40);
    mk_open_file_release(f);
    assert_int_equal(cache.memory, 0);
}

static void what_is_no_file_has_its_kind(void **state)
{
    (void)state;
    assert_int_equal(mkfifoat(folder.fd, "fifo", 0600), 0);
    struct mk_open_file *f = take("dir"), *top = take(""), *fifo = take("fifo");
    assert_int_equal(f->kind, MK_OPEN_FOLDER);
    assert_int_equal(top->kind, MK_OPEN_FOLDER);
    assert_int_equal(fifo->kind, MK_OPEN_OTHER);
    assert_true(f->fd == -1 && top->fd == -1 && fifo->fd == -1);
    assert_true(f->size == 0 && fifo->size == 0);
    mk_open_file_release(f);
    mk_open_file_release(top);
    mk_open_file_release(fifo);
}

static void errors_are_reported_and_forgotten(void **state)
{
    (void)state;
    static char longest[PATH_MAX + 1];
    memset(longest, 'x', PATH_MAX);
    assert_int_equal(take_error("nothing"), -ENOENT);
    assert_int_equal(take_error("small/x"), -ENOTDIR);
    assert_int_equal(take_error(longest), -ENAMETOOLONG);
    assert_int_equal(cache.n, 0);
    folder_add(&folder, "nothing", MK_STR("something"));
    struct mk_open_file *f = take("nothing");
    assert_str(f->content, "something");
    mk_open_file_release(f);
}

/* ---- Believing, and looking again ---- */

static void it_is_believed_for_a_while(void **state)
{
    (void)state;
    const struct mk_open_file *f = look("small");
    folder_add(&folder, "small", MK_STR("changed"));
    now += RECHECK_MS - 1;
    assert_ptr_equal(look("small"), f);
    now += 1;
    struct mk_open_file *other = take("small");
    assert_str(other->content, "changed");
    mk_open_file_release(other);
    assert_int_equal(cache.n, 1);
    assert_int_equal(cache.memory, 7);
}

static void the_same_file_is_kept(void **state)
{
    (void)state;
    static const char *const names[] = {"small", "large", "dir", ""};
    for (size_t i = 0; i < MK_LEN(names); i++) {
        struct mk_open_file *f = take(names[i]);
        now += RECHECK_MS;
        assert_ptr_equal(look(names[i]), f);
        folder_add(&folder, "large", MK_STR("shorter, but believed for another while"));
        assert_ptr_equal(look(names[i]), f);
        mk_open_file_release(f);
    }
}

static void check_seen(const char *what)
{
    struct mk_open_file *before = take("large");
    now += RECHECK_MS;
    struct mk_open_file *same = take("large");
    assert_ptr_equal(before, same);
    mk_open_file_release(same);
    struct stat st;
    char room[PATH_MAX];
    folder_path(&folder, "large", room);
    assert_int_equal(stat(room, &st), 0);
    if (strcmp(what, "size") == 0)
        assert_int_equal(truncate(room, 30), 0);
    else if (strcmp(what, "time") == 0)
        folder_set_time(&folder, "large", 1234567890);
    else if (strcmp(what, "inode") == 0)
        folder_add(&folder, "large", MK_STR("0123456789012345678901234567890123456789"));
    else /* touched by chmod only: the change time tells */
        assert_int_equal(chmod(room, 0600), 0);
    now += RECHECK_MS;
    struct mk_open_file *after = take("large");
    if (after == before)
        fail_msg("a change of %s was not seen", what);
    mk_open_file_release(after);
    mk_open_file_release(before);
}

static void every_change_is_seen(void **state)
{
    (void)state;
    usleep(20000); /* the clock of the file system is coarse */
    check_seen("size");
    check_seen("time");
    check_seen("inode");
    usleep(20000);
    check_seen("mode");
}

static void looking_again_costs_no_descriptor(void **state)
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
    assert_int_equal(after, before + 1); /* the large one is open */
}

static void what_is_gone_is_gone(void **state)
{
    (void)state;
    struct mk_open_file *f = take("large");
    assert_int_equal(unlinkat(folder.fd, "large", 0), 0);
    now += RECHECK_MS;
    assert_int_equal(take_error("large"), -ENOENT);
    assert_int_equal(cache.n, 0);
    char room[64];
    assert_int_equal(pread(f->fd, room, sizeof room, 0), 40); /* its holder keeps it */
    mk_open_file_release(f);
}

static void two_roots_do_not_mix(void **state)
{
    (void)state;
    struct mk_root other = {.path = "other"};
    struct mk_open_file *a, *b;
    char room[PATH_MAX];
    folder_add(&folder, "dir/small", MK_STR("other"));
    assert_int_equal(mk_file_open_root(folder_path(&folder, "dir", room), &other.fd), 0);
    a = take("small");
    assert_int_equal(mk_file_cache_acquire(&cache, &other, MK_STR("small"), now, &b), 0);
    assert_str(a->content, "0123456789");
    assert_str(b->content, "other");
    mk_open_file_release(a);
    mk_open_file_release(b);
    mk_fd_close(&other.fd);
}

/* ---- Limits ---- */

static void the_least_recently_used_goes_first(void **state)
{
    (void)state;
    add_many(6);
    look("f0");
    look("f1");
    look("f2");
    look("f3");
    look("f0");
    now += RECHECK_MS;
    look("f4");
    assert_int_equal(cache.n, 4);
    assert_true(is_listed("f0") && is_listed("f2") && is_listed("f3") && is_listed("f4"));
    look("f5");
    assert_true(is_listed("f0") && is_listed("f3") && is_listed("f4") && is_listed("f5"));
}

static void being_looked_at_again_is_use(void **state)
{
    (void)state;
    add_many(5);
    look("f0");
    look("f1");
    look("f2");
    look("f3");
    now += RECHECK_MS;
    look("f0");
    look("f4");
    assert_true(is_listed("f0"));
    assert_false(is_listed("f1"));
}

static void memory_goes_to_the_first_files(void **state)
{
    (void)state;
    init_with(
        (struct mk_file_cache_limits){.files = 100, .memory = 35, .small = 20, .recheck_ms = RECHECK_MS});
    add_many(6);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 6; i++) {
            const struct mk_open_file *f = look(nth(i));
            assert_int_equal(f->content.p != NULL, i < 3);
            assert_int_equal(f->fd >= 0, i >= 3);
            now++;
        }
    }
    assert_int_equal(cache.n, 6);
    assert_int_equal(cache.memory, 30);
}

static void files_in_turn_keep_it_when_all_are_checked_again(void **state)
{
    (void)state;
    init_with(
        (struct mk_file_cache_limits){.files = 100, .memory = 35, .small = 20, .recheck_ms = RECHECK_MS});
    add_many(6);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 6; i++)
            assert_int_equal(look(nth(i))->content.p != NULL, i < 3);
        now += RECHECK_MS;
    }
}

static void what_is_asked_for_takes_the_memory_of_what_is_not(void **state)
{
    (void)state;
    init_with(
        (struct mk_file_cache_limits){.files = 100, .memory = 35, .small = 20, .recheck_ms = RECHECK_MS});
    add_many(6);
    for (unsigned i = 0; i < 6; i++, now++)
        look(nth(i));
    now += RECHECK_MS;
    look("f2");
    const struct mk_open_file *f = look("f4");
    assert_non_null(f->content.p);
    assert_int_equal(f->fd, -1);
    assert_false(is_listed("f0"));
    assert_true(is_listed("f1") && is_listed("f2"));
    assert_non_null(look("f5")->content.p);
    assert_null(look("f3")->content.p); /* all that are there are in use */
    assert_int_equal(cache.memory, 30);
}

/* However long what is known of a file is believed. */
static void files_in_frequent_use_stay_in_memory(void **state)
{
    (void)state;
    init_with((struct mk_file_cache_limits){.files = 100, .memory = 35, .small = 20, .recheck_ms = 3600000});
    add_many(6);
    for (unsigned i = 0; i < 6; i++, now++)
        look(nth(i));
    now += 998;
    assert_null(look("f5")->content.p);
    now += 1;
    assert_non_null(look("f5")->content.p);
    assert_int_equal(cache.memory, 30);
}

static void a_changed_file_keeps_its_memory(void **state)
{
    (void)state;
    init_with(
        (struct mk_file_cache_limits){.files = 100, .memory = 35, .small = 20, .recheck_ms = RECHECK_MS});
    add_many(4);
    for (unsigned i = 0; i < 4; i++)
        look(nth(i));
    folder_add(&folder, "f1", MK_STR("other ten."));
    now += RECHECK_MS;
    for (unsigned i = 0; i < 3; i++)
        assert_non_null(look(nth(i))->content.p);
    assert_str(look("f1")->content, "other ten.");
    folder_add(&folder, "f1", MK_STR("now it is 16 long"));
    now += RECHECK_MS;
    look("f0");
    look("f2");
    assert_null(look("f1")->content.p); /* the others are in use, and it does not fit any more */
    assert_int_equal(cache.memory, 20);
}

static void what_alone_is_too_much_is_open(void **state)
{
    (void)state;
    init_with((struct mk_file_cache_limits){.files = 100, .memory = 15, .small = 20});
    folder_add(&folder, "sixteen", MK_STR("0123456789abcdef"));
    look("small");
    const struct mk_open_file *f = look("sixteen");
    assert_null(f->content.p);
    assert_true(f->fd >= 0);
    assert_int_equal(cache.memory, 10);
    assert_true(is_listed("small")); /* nothing was thrown out for it */
}

static void more_than_fit_in_turn_do_not_throw_out_each_other(void **state)
{
    (void)state;
    init_with((struct mk_file_cache_limits){.files = 20, .memory = 0, .recheck_ms = RECHECK_MS});
    add_many(60);
    found_of(60);
    unsigned found = 0;
    for (unsigned round = 0; round < 5; round++)
        found += found_of(60);
    assert_int_equal(cache.n, 20);
    assert_true(found >= 5 * 10); /* of 5 * 20 at best; none if the least recently used always went */
}

static void a_newcomer_soon_has_a_place(void **state)
{
    (void)state;
    init_with((struct mk_file_cache_limits){.files = 4, .memory = 0, .recheck_ms = RECHECK_MS});
    add_many(5);
    found_of(4);
    unsigned looks = 0;
    for (; !is_listed("f4"); looks++)
        look("f4");
    assert_true(looks > 1 && looks <= 16);
}

static mk_err take_kept(const char *path)
{
    struct mk_open_file *f = NULL;
    mk_err e = mk_file_cache_acquire_if_kept(&cache, &root, mk_str_from_c(path), now, &f);
    if (!e)
        mk_open_file_release(f);
    return e;
}

static void what_would_not_be_kept_need_not_be_opened(void **state)
{
    (void)state;
    init_with((struct mk_file_cache_limits){.files = 2, .recheck_ms = RECHECK_MS});
    assert_int_equal(take_kept("dir"), 0);
    assert_true(is_listed("dir"));
    look("small");
    assert_int_equal(take_kept("large"), -EAGAIN);
    assert_int_equal(take_kept("dir"), 0);
    now += RECHECK_MS;
    assert_int_equal(take_kept("large"), 0);
    init_with((struct mk_file_cache_limits){.files = 0});
    assert_int_equal(take_kept("large"), -EAGAIN);
}

static void a_cache_of_none_keeps_none(void **state)
{
    (void)state;
    static const struct mk_file_cache_limits limits = {
        .files = 0, .memory = 100, .small = 20, .recheck_ms = 1000};
    mk_file_cache_fini(&cache);
    init_cache(&limits);
    struct mk_open_file *a = take("small"), *b = take("small");
    assert_ptr_not_equal(a, b);
    assert_int_equal(cache.n, 0);
    mk_open_file_release(a);
    mk_open_file_release(b);
}

static void references_outlive_their_place(void **state)
{
    (void)state;
    add_many(6);
    struct mk_open_file *f = take("f0"), *large = take("large");
    now += RECHECK_MS;
    for (unsigned i = 1; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        look(name);
    }
    assert_false(f->listed);
    assert_false(large->listed);
    assert_str(f->content, "ten bytes.");
    assert_true(large->fd >= 0);
    mk_open_file_release(f);
    mk_open_file_release(large);
}

static void references_outlive_the_cache(void **state)
{
    (void)state;
    struct mk_open_file *f = take("small"), *large = take("large");
    mk_file_cache_fini(&cache);
    assert_str(f->content, "0123456789");
    char room[64];
    assert_int_equal(pread(large->fd, room, sizeof room, 0), 40);
    mk_open_file_release(f);
    mk_open_file_release(large);
    init_cache(&usual);
}

static void drop(void *f)
{
    mk_open_file_release(f);
}

static void a_reference_too_few_is_a_bug(void **state)
{
    (void)state;
    struct mk_open_file f = {.refs = 0};
    assert_bug(drop, &f, "refs > 0");
}

/* ---- Forgetting and shedding ---- */

static void a_forgotten_file_is_reopened(void **state)
{
    (void)state;
    struct mk_open_file *f = take("small");
    mk_file_cache_invalidate(f);
    assert_int_equal(cache.n, 0);
    mk_file_cache_invalidate(f);
    struct mk_open_file *again = take("small");
    assert_ptr_not_equal(f, again);
    assert_str(f->content, "0123456789");
    mk_open_file_release(f);
    mk_open_file_release(again);
    assert_int_equal(cache.n, 1);
}

static void idle_descriptors_are_shed(void **state)
{
    (void)state;
    folder_add(&folder, "large2", MK_STR("0123456789012345678901234567890123456789"));
    look("small");
    look("large");
    struct mk_open_file *used = take("large2");
    assert_int_equal(mk_file_cache_close_idle(&cache), 1);
    assert_true(is_listed("small") && is_listed("large2"));
    assert_false(is_listed("large"));
    assert_int_equal(mk_file_cache_close_idle(&cache), 0);
    mk_open_file_release(used);
    assert_int_equal(mk_file_cache_close_idle(&cache), 1);
}

static void clearing_keeps_what_is_used(void **state)
{
    (void)state;
    look("small");
    look("large");
    struct mk_open_file *used = take("dir/file");
    mk_file_cache_evict_idle(&cache);
    assert_false(is_listed("small") || is_listed("large"));
    assert_int_equal(cache.n, 1);
    mk_open_file_release(used);
    mk_file_cache_evict_idle(&cache);
    assert_int_equal(cache.n, 0);
    assert_int_equal(cache.memory, 0);
}

static void without_descriptors_idle_ones_are_used(void **state)
{
    (void)state;
    struct rlimit before, none;
    look("large");
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

/* More files than there were buckets at first. */
static void many_files_are_found(void **state)
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
        struct mk_open_file *f = take(name);
        assert_str(f->content, name);
        assert_int_equal(f->refs, 2); /* it is in the cache, too */
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
        cmocka_unit_test_setup_teardown(small_files_are_in_memory, start, stop),
        cmocka_unit_test_setup_teardown(many_files_are_found, start, stop),
        cmocka_unit_test_setup_teardown(large_files_are_open, start, stop),
        cmocka_unit_test_setup_teardown(what_is_no_file_has_its_kind, start, stop),
        cmocka_unit_test_setup_teardown(errors_are_reported_and_forgotten, start, stop),
        cmocka_unit_test_setup_teardown(it_is_believed_for_a_while, start, stop),
        cmocka_unit_test_setup_teardown(the_same_file_is_kept, start, stop),
        cmocka_unit_test_setup_teardown(every_change_is_seen, start, stop),
        cmocka_unit_test_setup_teardown(looking_again_costs_no_descriptor, start, stop),
        cmocka_unit_test_setup_teardown(what_is_gone_is_gone, start, stop),
        cmocka_unit_test_setup_teardown(two_roots_do_not_mix, start, stop),
        cmocka_unit_test_setup_teardown(the_least_recently_used_goes_first, start, stop),
        cmocka_unit_test_setup_teardown(being_looked_at_again_is_use, start, stop),
        cmocka_unit_test_setup_teardown(memory_goes_to_the_first_files, start, stop),
        cmocka_unit_test_setup_teardown(files_in_turn_keep_it_when_all_are_checked_again, start, stop),
        cmocka_unit_test_setup_teardown(what_is_asked_for_takes_the_memory_of_what_is_not, start, stop),
        cmocka_unit_test_setup_teardown(files_in_frequent_use_stay_in_memory, start, stop),
        cmocka_unit_test_setup_teardown(a_changed_file_keeps_its_memory, start, stop),
        cmocka_unit_test_setup_teardown(what_alone_is_too_much_is_open, start, stop),
        cmocka_unit_test_setup_teardown(more_than_fit_in_turn_do_not_throw_out_each_other, start, stop),
        cmocka_unit_test_setup_teardown(a_newcomer_soon_has_a_place, start, stop),
        cmocka_unit_test_setup_teardown(what_would_not_be_kept_need_not_be_opened, start, stop),
        cmocka_unit_test_setup_teardown(a_cache_of_none_keeps_none, start, stop),
        cmocka_unit_test_setup_teardown(references_outlive_their_place, start, stop),
        cmocka_unit_test_setup_teardown(references_outlive_the_cache, start, stop),
        cmocka_unit_test_setup_teardown(a_reference_too_few_is_a_bug, start, stop),
        cmocka_unit_test_setup_teardown(a_forgotten_file_is_reopened, start, stop),
        cmocka_unit_test_setup_teardown(idle_descriptors_are_shed, start, stop),
        cmocka_unit_test_setup_teardown(clearing_keeps_what_is_used, start, stop),
        cmocka_unit_test_setup_teardown(without_descriptors_idle_ones_are_used, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
