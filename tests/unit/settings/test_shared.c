/* SPDX-License-Identifier: Apache-2.0 */
#include "settings/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/test.h"

static void name_and_size_are_one_place(void **state)
{
    (void)state;
    struct mk_shared s = {0};
    char *a = mk_shared_get(&s, MK_STR("a"), 100), *b = mk_shared_get(&s, MK_STR("b"), 100);
    assert_non_null(a);
    assert_non_null(b);
    assert_ptr_not_equal(a, b);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(a[i], 0);
    a[0] = 'x';
    assert_ptr_equal(mk_shared_get(&s, MK_STR("a"), 100), a);
    assert_int_equal(a[0], 'x');
    char *larger = mk_shared_get(&s, MK_STR("a"), 101);
    assert_ptr_not_equal(larger, a);
    assert_int_equal(larger[0], 0);
    assert_non_null(mk_shared_get(&s, MK_STR(""), 0));
    mk_shared_fini(&s);
    mk_shared_fini(&s);
}

static void processes_share_it(void **state)
{
    (void)state;
    struct mk_shared s = {0};
    volatile char *a = mk_shared_get(&s, MK_STR("a"), 1);
    assert_non_null(a);
    pid_t child = fork();
    if (child == 0) {
        *a = 'x';
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(*a, 'x');
    mk_shared_fini(&s);
}

static void what_cannot_be_is_null(void **state)
{
    (void)state;
    struct mk_shared s = {0};
    char name[MK_SHARED_NAME + 1];
    memset(name, 'n', sizeof name);
    assert_null(mk_shared_get(&s, mk_str_of(name, sizeof name), 1));
    assert_non_null(mk_shared_get(&s, mk_str_of(name, sizeof name - 1), 1));
    assert_null(mk_shared_get(&s, MK_STR("huge"), SIZE_MAX - 100000));
    mk_shared_fini(&s);
}

static int n_made;

static int make(void)
{
    n_made++;
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int make_none(void)
{
    return -EMFILE;
}

static void a_descriptor_is_made_once(void **state)
{
    (void)state;
    struct mk_shared s = {0};
    char name[MK_SHARED_NAME + 1];
    memset(name, 'n', sizeof name);
    assert_int_equal(mk_shared_fd(&s, MK_STR("a"), make_none), -EMFILE);
    int a = mk_shared_fd(&s, MK_STR("a"), make), b = mk_shared_fd(&s, MK_STR("b"), make);
    assert_true(a >= 0 && b >= 0 && a != b);
    assert_int_equal(mk_shared_fd(&s, MK_STR("a"), make), a);
    assert_int_equal(n_made, 2);
    assert_int_equal(mk_shared_fd(&s, mk_str_of(name, sizeof name), make), -ENAMETOOLONG);
    mk_shared_fini(&s);
    assert_int_equal(fcntl(a, F_GETFD), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_and_size_are_one_place),
        cmocka_unit_test(processes_share_it),
        cmocka_unit_test(what_cannot_be_is_null),
        cmocka_unit_test(a_descriptor_is_made_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
