/* SPDX-License-Identifier: Apache-2.0 */
#include "os/folder.h"

#include "unit/fixtures.h"
#include "unit/folder.h"
#include "unit/test.h"

static struct folder folder;
static int fd;
static unsigned n_names, length;

static void setup(void)
{
    folder_setup(&folder);
    fd_setup(&fd);
    fd = openat(folder.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    n_names = length = 0;
}

static void count(mk_str name, void *data)
{
    (void)data;
    n_names++;
    length += (unsigned)name.len;
}

static void add(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, "a name of fifty bytes, so that many pieces are %03u", i);
        assert_int_equal(strlen(name), 50);
        folder_add(&folder, name, MK_STR(""));
    }
}

static void folder_empty_has_no_names(void **state)
{
    (void)state;
    assert_int_equal(mk_folder_list(fd, 0, count, NULL), 0);
    assert_int_equal(n_names, 0);
}

static void folder_lists_each_name_once(void **state)
{
    (void)state;
    add(500);
    folder_add(&folder, ".hidden", MK_STR(""));
    folder_add_folder(&folder, "folder");
    assert_int_equal(mk_folder_list(fd, 502, count, NULL), 0);
    assert_int_equal(n_names, 502);
    assert_int_equal(length, 500 * 50 + 7 + 6);
}

static void folder_is_listed_from_beginning_each_time(void **state)
{
    (void)state;
    add(3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(mk_folder_list(fd, 3, count, NULL), 0);
    assert_int_equal(n_names, 9);
}

static void folder_number_of_names_is_limited(void **state)
{
    (void)state;
    add(5);
    assert_int_equal(mk_folder_list(fd, 4, count, NULL), -E2BIG);
    assert_int_equal(n_names, 4);
}

static void folder_list_of_file_is_an_error(void **state)
{
    (void)state;
    folder_add(&folder, "file", MK_STR("text"));
    int file = openat(folder.fd, "file", O_RDONLY | O_CLOEXEC);
    assert_int_equal(mk_folder_list(file, 10, count, NULL), -ENOTDIR);
    mk_fd_close(&file);
    assert_int_equal(mk_folder_list(-1, 10, count, NULL), -EBADF);
    assert_int_equal(n_names, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(folder_empty_has_no_names, setup),
        fixture_test(folder_lists_each_name_once, setup),
        fixture_test(folder_is_listed_from_beginning_each_time, setup),
        fixture_test(folder_number_of_names_is_limited, setup),
        fixture_test(folder_list_of_file_is_an_error, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
