/* SPDX-License-Identifier: Apache-2.0 */
/* Attachments of cached files, and the limit of entries. */
#include "unit/files/fixture.h"

static unsigned n_freed;

static void free_note(struct mk_open_file_attachment *note)
{
    (void)note;
    n_freed++;
}

static void file_cache_attachment_is_freed_with_its_file(void **state)
{
    (void)state;
    static struct mk_open_file_attachment note = {.free = free_note};
    n_freed = 0;
    struct mk_open_file *f = acquire_file("small");
    mk_file_cache_attach(f, &note, 1);
    mk_open_file_release(f);
    assert_int_equal(n_freed, 0);
    f = acquire_file("small");
    assert_ptr_equal(f->note, &note);
    mk_file_cache_invalidate(f);
    assert_int_equal(n_freed, 0);
    mk_open_file_release(f);
    assert_int_equal(n_freed, 1);
}

static struct mk_open_file_attachment notes[8];

/* Adds an attachment if there is memory for it. Returns whether there was. */
static bool add_note(struct mk_open_file *f, size_t i, size_t size)
{
    if (!mk_file_cache_may_attach(f, size, now))
        return false;
    notes[i].free = free_note;
    mk_file_cache_attach(f, &notes[i], size);
    return true;
}

static void file_cache_attachment_without_size_is_freed_with_the_last_user(void **state)
{
    (void)state;
    static struct mk_open_file_attachment note = {.free = free_note};
    n_freed = 0;
    struct mk_open_file *a = acquire_file("large"), *b = acquire_file("large");
    mk_file_cache_attach(a, &note, 0);
    mk_open_file_release(a);
    assert_ptr_equal(b->note, &note);
    mk_open_file_release(b);
    assert_int_equal(n_freed, 1);
    assert_true(is_in(&cache.lean, "large"));
    b = acquire_file("large");
    assert_null(b->note);
    mk_open_file_release(b);
}

static void file_cache_attachments_count_as_memory(void **state)
{
    (void)state;
    n_freed = 0;
    struct mk_open_file *large = acquire_file("large"), *small = acquire_file("small");
    assert_true(add_note(large, 0, 60));
    assert_int_equal(cache.memory, 70);
    assert_true(is_in(&cache.rich, "large"));
    assert_false(add_note(small, 1, 31));
    assert_true(add_note(small, 1, 30));
    assert_int_equal(cache.memory, 100);
    mk_open_file_release(large);
    mk_open_file_release(small);
    assert_int_equal(n_freed, 0);
    mk_file_cache_evict_idle(&cache);
    assert_int_equal(n_freed, 2);
    assert_int_equal(cache.memory, 0);
}

static void file_cache_attachment_takes_memory_of_unused_entries(void **state)
{
    (void)state;
    struct mk_open_file *large = acquire_file("large");
    assert_true(add_note(large, 0, 90));
    mk_open_file_release(large);
    now++;
    struct mk_open_file *file = acquire_file("dir/file");
    assert_false(add_note(file, 1, 50)); /* the large file was used just now */
    now += RECHECK_MS;
    mk_open_file_release(file);
    file = acquire_file("dir/file");
    assert_true(add_note(file, 1, 50));
    assert_false(is_listed("large"));
    assert_int_equal(cache.memory, 50 + 6);
    mk_open_file_release(file);
}

static void file_cache_uncached_file_cannot_have_attachments(void **state)
{
    (void)state;
    init_with((struct mk_file_cache_limits){.files = 0, .memory = 100, .small = 20});
    struct mk_open_file *f = acquire_file("small");
    assert_false(mk_file_cache_may_attach(f, 1, now));
    mk_open_file_release(f);
}

static void file_cache_max_entries_can_be_reduced(void **state)
{
    (void)state;
    add_many(4);
    found_of(4);
    struct mk_open_file *used = acquire_file("f1");
    mk_file_cache_set_max_entries(&cache, 2);
    assert_int_equal(cache.n, 2);
    assert_true(is_listed("f3") && is_listed("f1"));
    now += RECHECK_MS;
    find_file("f0");
    assert_int_equal(cache.n, 2);
    mk_file_cache_set_max_entries(&cache, 0);
    assert_int_equal(cache.n, 0);
    find_file("f0");
    assert_int_equal(cache.n, 0);
    assert_str(used->content, "ten bytes.");
    mk_open_file_release(used);
    mk_file_cache_set_max_entries(&cache, 1000);
    add_many(6);
    now += RECHECK_MS;
    found_of(6);
    assert_int_equal(cache.n, 4); /* the limit */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(file_cache_attachment_is_freed_with_its_file, setup, teardown),
        fixture_test(file_cache_attachment_without_size_is_freed_with_the_last_user, setup, teardown),
        fixture_test(file_cache_attachments_count_as_memory, setup, teardown),
        fixture_test(file_cache_attachment_takes_memory_of_unused_entries, setup, teardown),
        fixture_test(file_cache_uncached_file_cannot_have_attachments, setup, teardown),
        fixture_test(file_cache_max_entries_can_be_reduced, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
