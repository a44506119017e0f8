/* SPDX-License-Identifier: Apache-2.0 */
#include "files/sibling_suffixes.h"

#include <time.h>

#include "unit/folder.h"
#include "unit/test.h"

enum { RECHECK_MS = 1000, GZ = 1, BR = 2 };

static const mk_str endings[] = {MK_STR_INIT(".gz"), MK_STR_INIT(".br")};
static struct folder folder;
static struct mk_root root;
static struct mk_file_cache cache;
static uint64_t now_ms;
static int64_t now;

static void setup(void)
{
    static const struct mk_file_cache_limits limits = {.files = 100, .recheck_ms = RECHECK_MS};
    folder_setup(&folder);
    folder_add_folder(&folder, "in");
    folder_add(&folder, "page", MK_STR("page"));
    folder_add(&folder, "in/page", MK_STR("page"));
    root = (struct mk_root){.fd = folder.fd, .path = folder.path};
    assert_int_equal(mk_file_cache_init(&cache, &limits), 0);
    now_ms = 5000;
    now = time(NULL) + 3600; /* the folder last changed an hour ago */
}

static void teardown(void)
{
    mk_file_cache_fini(&cache);
}

static uint32_t beside(const char *path)
{
    struct mk_open_file *f;
    assert_int_equal(mk_file_cache_acquire(&cache, &root, mk_str_from_c(path), now_ms, &f), 0);
    uint32_t found = mk_sibling_suffixes_find(f, endings, 2, now_ms, now);
    mk_open_file_release(f);
    return found;
}

static void siblings_folder_is_read_on_the_second_request(void **state)
{
    (void)state;
    assert_int_equal(beside("page"), UINT32_MAX);
    assert_int_equal(beside("page"), 0);
}

static void siblings_suffixes_are_found_by_name(void **state)
{
    (void)state;
    folder_add(&folder, "other.gz", MK_STR(""));
    folder_add(&folder, "in/.br", MK_STR(""));
    folder_add(&folder, "in/a.gz.b", MK_STR(""));
    for (int i = 0; i < 2; i++) {
        beside("page");
        beside("in/page");
    }
    assert_int_equal(beside("page"), GZ);
    assert_int_equal(beside("in/page"), BR);
}

static void siblings_change_is_detected_on_recheck(void **state)
{
    (void)state;
    beside("in/page");
    assert_int_equal(beside("in/page"), 0);
    folder_add(&folder, "in/page.gz", MK_STR(""));
    assert_int_equal(beside("in/page"), 0);
    now_ms += RECHECK_MS;
    assert_int_equal(beside("in/page"), UINT32_MAX);
    assert_int_equal(beside("in/page"), GZ);
}

static void siblings_recently_changed_folder_is_not_read(void **state)
{
    (void)state;
    now = time(NULL);
    for (int i = 0; i < 5; i++)
        assert_int_equal(beside("page"), UINT32_MAX);
    now += 5;
    assert_int_equal(beside("page"), 0);
}

/* Archives and copied folders keep their old times. */
static void siblings_old_mtime_with_recent_change_is_not_read(void **state)
{
    (void)state;
    const struct timespec old[] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(folder.fd, "in", old, 0), 0);
    now = time(NULL);
    for (int i = 0; i < 5; i++)
        assert_int_equal(beside("in/page"), UINT32_MAX);
}

static void siblings_folder_from_the_future_is_not_read(void **state)
{
    (void)state;
    const struct timespec future[] = {{.tv_sec = time(NULL) + 86400}, {.tv_sec = time(NULL) + 86400}};
    assert_int_equal(utimensat(folder.fd, "in", future, 0), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(beside("in/page"), UINT32_MAX);
}

/* Some file systems do not update the time of a changed folder. */
static void siblings_result_expires(void **state)
{
    (void)state;
    beside("in/page");
    assert_int_equal(beside("in/page"), 0);
    struct mk_open_file *f;
    assert_int_equal(mk_file_cache_acquire(&cache, &root, MK_STR("in"), now_ms, &f), 0);
    folder_add(&folder, "in/page.gz", MK_STR(""));
    now_ms += 60 * 1000;
    f->checked_ms = now_ms; /* as if a check had found the folder unchanged */
    assert_int_equal(beside("in/page"), GZ);
    mk_open_file_release(f);
}

static void siblings_large_folder_is_not_read(void **state)
{
    (void)state;
    for (int i = 0; i < 1024; i++) {
        char name[16];
        snprintf(name, sizeof name, "in/%d", i);
        folder_add(&folder, name, MK_STR(""));
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(beside("in/page"), UINT32_MAX);
}

static void siblings_suffix_case_is_ignored(void **state)
{
    (void)state;
    folder_add(&folder, "in/PAGE.GZ", MK_STR(""));
    beside("in/page");
    assert_int_equal(beside("in/page"), GZ);
}

/* The cached names are those of the folder that was replaced. */
static void siblings_replaced_folder_is_not_read(void **state)
{
    (void)state;
    beside("in/page");
    assert_int_equal(renameat(folder.fd, "in", folder.fd, "old"), 0);
    folder_add_folder(&folder, "in");
    assert_int_equal(beside("in/page"), UINT32_MAX);
}

static void siblings_uncached_folder_is_not_read(void **state)
{
    (void)state;
    static const struct mk_file_cache_limits none = {.recheck_ms = RECHECK_MS};
    mk_file_cache_fini(&cache);
    assert_int_equal(mk_file_cache_init(&cache, &none), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(beside("in/page"), UINT32_MAX);
}

static void siblings_of_uncached_file_are_unknown(void **state)
{
    (void)state;
    struct mk_open_file *f = mk_open_file_from_fd(dup(folder.fd), 0);
    assert_non_null(f);
    assert_int_equal(mk_sibling_suffixes_find(f, endings, 2, now_ms, now), UINT32_MAX);
    mk_open_file_release(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(siblings_folder_is_read_on_the_second_request, setup, teardown),
        fixture_test(siblings_suffixes_are_found_by_name, setup, teardown),
        fixture_test(siblings_change_is_detected_on_recheck, setup, teardown),
        fixture_test(siblings_recently_changed_folder_is_not_read, setup, teardown),
        fixture_test(siblings_old_mtime_with_recent_change_is_not_read, setup, teardown),
        fixture_test(siblings_folder_from_the_future_is_not_read, setup, teardown),
        fixture_test(siblings_result_expires, setup, teardown),
        fixture_test(siblings_large_folder_is_not_read, setup, teardown),
        fixture_test(siblings_suffix_case_is_ignored, setup, teardown),
        fixture_test(siblings_replaced_folder_is_not_read, setup, teardown),
        fixture_test(siblings_uncached_folder_is_not_read, setup, teardown),
        fixture_test(siblings_of_uncached_file_are_unknown, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
