/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/shared_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/stats.h"
#include "unit/test.h"

static void shared_state_memory_is_found_by_name_and_size(void **state)
{
    (void)state;
    struct mk_shared_state s = {0};
    char *a = mk_shared_state_get_memory(&s, MK_STR("a"), 100),
         *b = mk_shared_state_get_memory(&s, MK_STR("b"), 100);
    assert_non_null(a);
    assert_non_null(b);
    assert_ptr_not_equal(a, b);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(a[i], 0);
    a[0] = 'x';
    assert_ptr_equal(mk_shared_state_get_memory(&s, MK_STR("a"), 100), a);
    assert_int_equal(a[0], 'x');
    char *larger = mk_shared_state_get_memory(&s, MK_STR("a"), 101);
    assert_ptr_not_equal(larger, a);
    assert_int_equal(larger[0], 0);
    assert_non_null(mk_shared_state_get_memory(&s, MK_STR(""), 0));
    mk_shared_state_fini(&s);
    mk_shared_state_fini(&s);
}

static void shared_state_is_shared_by_processes(void **state)
{
    (void)state;
    struct mk_shared_state s = {0};
    volatile char *a = mk_shared_state_get_memory(&s, MK_STR("a"), 1);
    assert_non_null(a);
    pid_t child = fork();
    if (child == 0) {
        *a = 'x';
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(*a, 'x');
    mk_shared_state_fini(&s);
}

static void shared_state_impossible_requests_return_null(void **state)
{
    (void)state;
    struct mk_shared_state s = {0};
    char name[MK_SHARED_STATE_NAME_MAX + 1];
    memset(name, 'n', sizeof name);
    assert_null(mk_shared_state_get_memory(&s, mk_str_of(name, sizeof name), 1));
    assert_non_null(mk_shared_state_get_memory(&s, mk_str_of(name, sizeof name - 1), 1));
    assert_null(mk_shared_state_get_memory(&s, MK_STR("huge"), SIZE_MAX - 100000));
    mk_shared_state_fini(&s);
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

static void shared_state_descriptor_is_created_once(void **state)
{
    (void)state;
    struct mk_shared_state s = {0};
    char name[MK_SHARED_STATE_NAME_MAX + 1];
    memset(name, 'n', sizeof name);
    assert_int_equal(mk_shared_state_fd(&s, MK_STR("a"), make_none), -EMFILE);
    int a = mk_shared_state_fd(&s, MK_STR("a"), make), b = mk_shared_state_fd(&s, MK_STR("b"), make);
    assert_true(a >= 0 && b >= 0 && a != b);
    assert_int_equal(mk_shared_state_fd(&s, MK_STR("a"), make), a);
    assert_int_equal(n_made, 2);
    assert_int_equal(mk_shared_state_fd(&s, mk_str_of(name, sizeof name), make), -ENAMETOOLONG);
    mk_shared_state_fini(&s);
    assert_int_equal(fcntl(a, F_GETFD), -1);
}

/* Exits with 0 if the process sees its series at the same address. */
static void count_apart(struct mk_shared_state *s, const struct mk_stat_table *table)
{
    struct mk_stat_registry *r = s->statistics;
    mk_str value = MK_STR("tried");
    bool parted = mk_shared_state_detach_statistics(s) && mk_shared_state_get_statistics(s) == r;
    uint32_t series = parted ? mk_stat_series(r, mk_stat_register_table(r, table), &value) : 0;
    mk_stat_add(mk_stat_cells(r, series, 0), 1);
    _exit(!series || mk_stat_sum(r, series, 0) != 1);
}

static void shared_state_statistics_of_a_trial_are_separate(void **state)
{
    (void)state;
    static const struct mk_stat_metric one[] = {{.name = "n"}}, other[] = {{.name = "m"}};
    static const struct mk_stat_table table = {"t", {"name"}, one, 1, {0}},
                                      changed = {"t", {"name"}, other, 1, {0}};
    struct mk_shared_state s = {0};
    assert_true(mk_shared_state_detach_statistics(&s)); /* there are no statistics yet */
    struct mk_stat_registry *r = mk_shared_state_get_statistics(&s);
    mk_str value = MK_STR("serves");
    int status = -1;
    assert_non_null(r);
    uint32_t series = mk_stat_series(r, mk_stat_register_table(r, &table), &value);
    mk_stat_add(mk_stat_cells(r, series, 0), 7);
    pid_t child = fork();
    if (child == 0)
        count_apart(&s, &changed);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(mk_stat_find(r, "t"), 1); /* the table was not replaced */
    assert_int_equal(mk_stat_next(r, 1, 0), series);
    assert_int_equal(mk_stat_next(r, 1, series), 0);
    assert_int_equal(mk_stat_sum(r, series, 0), 7);
    mk_shared_state_fini(&s);
}

static const struct mk_stat_metric file_metrics[] = {{.name = "n_total", .help = "N.", .column = "n"}};
static const struct mk_stat_table file_table = {
    .name = "t", .labels = {"label"}, .metrics = file_metrics, .n_metrics = 1};

static void set_file_variable(int fd)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", fd);
    assert_int_equal(setenv(MK_STAT_FILE_VARIABLE, text, 1), 0);
}

static uint32_t count_in_file(struct mk_shared_state *s, uint64_t n)
{
    const mk_str value = MK_STR("a");
    struct mk_stat_registry *r = mk_shared_state_get_statistics(s);
    assert_non_null(r);
    uint32_t series = mk_stat_series(r, mk_stat_register_table(r, &file_table), &value);
    mk_stat_add(mk_stat_cells(r, series, 1), n);
    return series;
}

static void shared_state_inherited_statistics_are_cleared_and_visible_to_the_reader(void **state)
{
    (void)state;
    struct mk_shared_state s = {0};
    int fd = mk_stat_file_new();
    struct mk_stat_registry *reader = mk_stat_file_map(fd, NULL);
    assert_true(fd >= 0);
    assert_non_null(reader);
    set_file_variable(fd);
    for (int i = 0; i < 2; i++) { /* the second server starts after a crash of the first one */
        uint32_t series = count_in_file(&s, 7);
        assert_int_equal(mk_stat_find(reader, "t"), 1);
        assert_int_equal(mk_stat_sum(reader, series, 0), 7);
        mk_shared_state_fini(&s);
    }
    assert_int_equal(ftruncate(fd, 0), -1);
    int other = mk_stat_file_new();
    assert_ptr_equal(mk_stat_file_map(other, reader), reader);
    assert_int_equal(mk_stat_find(reader, "t"), 0);
    mk_stat_file_unmap(reader);
    mk_stat_file_unmap(NULL);
    close(fd);
    close(other);
    assert_int_equal(unsetenv(MK_STAT_FILE_VARIABLE), 0);
}

static void shared_state_unusable_statistics_file_is_ignored(void **state)
{
    (void)state;
    struct mk_shared_state s = {0};
    int fd = memfd_create("small", MFD_CLOEXEC);
    assert_null(mk_stat_file_map(fd, NULL));
    set_file_variable(fd);
    (void)count_in_file(&s, 1);
    mk_shared_state_fini(&s);
    close(fd);
    (void)count_in_file(&s, 1);
    mk_shared_state_fini(&s);
    assert_int_equal(unsetenv(MK_STAT_FILE_VARIABLE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_state_memory_is_found_by_name_and_size),
        cmocka_unit_test(shared_state_is_shared_by_processes),
        cmocka_unit_test(shared_state_impossible_requests_return_null),
        cmocka_unit_test(shared_state_descriptor_is_created_once),
        cmocka_unit_test(shared_state_statistics_of_a_trial_are_separate),
        cmocka_unit_test(shared_state_inherited_statistics_are_cleared_and_visible_to_the_reader),
        cmocka_unit_test(shared_state_unusable_statistics_file_is_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
