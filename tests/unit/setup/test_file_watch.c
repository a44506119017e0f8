/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/file_watch.h"

#include <sys/stat.h>
#include <unistd.h>

#include "unit/fixtures.h"
#include "unit/folder.h"
#include "unit/test.h"

static struct folder folder;
static struct mk_arena arena;
static struct mk_file_watch *list;
static char path[PATH_MAX];

static void setup(void)
{
    folder_setup(&folder);
    arena_setup(&arena);
    list = NULL;
    folder_path(&folder, "a.pem", path);
}

static void file_watch_unchanged_file_is_not_reported(void **state)
{
    (void)state;
    assert_false(mk_file_watch_poll(list));
    folder_add(&folder, "a.pem", MK_STR("one"));
    assert_true(mk_file_watch_add(&list, &arena, path));
    assert_true(mk_file_watch_add(&list, &arena, path));
    assert_null(list->next);
    assert_false(mk_file_watch_poll(list));
}

static void file_watch_creation_and_deletion_are_reported_once(void **state)
{
    (void)state;
    assert_true(mk_file_watch_add(&list, &arena, path));
    assert_false(mk_file_watch_poll(list));
    folder_add(&folder, "a.pem", MK_STR("one"));
    assert_true(mk_file_watch_poll(list));
    assert_false(mk_file_watch_poll(list));
    assert_int_equal(unlink(path), 0);
    assert_true(mk_file_watch_poll(list));
    assert_false(mk_file_watch_poll(list));
}

static void file_watch_replaced_file_is_reported(void **state)
{
    char other[PATH_MAX];
    (void)state;
    folder_add(&folder, "a.pem", MK_STR("one"));
    folder_add(&folder, "b.pem", MK_STR("two"));
    assert_true(mk_file_watch_add(&list, &arena, path));
    assert_int_equal(rename(folder_path(&folder, "b.pem", other), path), 0);
    assert_true(mk_file_watch_poll(list));
    assert_int_equal(chmod(path, 0600), 0); /* a user who could not read the file may now be able to */
    assert_true(mk_file_watch_poll(list));
}

static void file_watch_follows_links(void **state)
{
    char link[PATH_MAX], next[PATH_MAX];
    (void)state;
    folder_add(&folder, "a.pem", MK_STR("one"));
    folder_add(&folder, "b.pem", MK_STR("one"));
    assert_int_equal(symlink("a.pem", folder_path(&folder, "live", link)), 0);
    assert_true(mk_file_watch_add(&list, &arena, link));
    assert_int_equal(symlink("b.pem", folder_path(&folder, "next", next)), 0);
    assert_false(mk_file_watch_poll(list));
    assert_int_equal(rename(next, link), 0);
    assert_true(mk_file_watch_poll(list));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(file_watch_unchanged_file_is_not_reported, setup),
        fixture_test(file_watch_creation_and_deletion_are_reported_once, setup),
        fixture_test(file_watch_replaced_file_is_reported, setup),
        fixture_test(file_watch_follows_links, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
