/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fd.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "unit/test.h"

static void fd_close_twice_is_harmless(void **state)
{
    (void)state;
    int fd = open("/dev/null", O_RDONLY), copy = fd;
    mk_fd_close(&fd);
    assert_int_equal(fd, -1);
    assert_int_equal(fcntl(copy, F_GETFD), -1);
    int other = open("/dev/null", O_RDONLY);
    assert_int_equal(other, copy);
    mk_fd_close(&fd);
    assert_int_equal(fcntl(other, F_GETFD), 0);
    close(other);
}

static void fd_flags_are_set(void **state)
{
    (void)state;
    int fd = open("/dev/null", O_RDONLY | O_APPEND);
    assert_int_equal(mk_fd_set_nonblock(fd), 0);
    assert_int_equal(fcntl(fd, F_GETFL) & (O_NONBLOCK | O_APPEND), O_NONBLOCK | O_APPEND);
    assert_int_equal(mk_fd_set_cloexec(fd, true), 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(mk_fd_set_cloexec(fd, false), 0);
    assert_int_equal(fcntl(fd, F_GETFD), 0);
    close(fd);
    assert_int_equal(mk_fd_set_nonblock(fd), -EBADF);
    assert_int_equal(mk_fd_set_cloexec(fd, true), -EBADF);
}

static void fd_limit_is_read_and_changed(void **state)
{
    (void)state;
    struct rlimit before, now;
    uint64_t limit = 0;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(mk_fd_set_limit(0, &limit), 0);
    assert_int_equal(limit, before.rlim_cur);
    assert_int_equal(mk_fd_set_limit(before.rlim_cur - 1, &limit), 0);
    assert_int_equal(limit, before.rlim_cur - 1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(now.rlim_cur, before.rlim_cur - 1);
    assert_int_equal(now.rlim_max, before.rlim_max);
    assert_int_equal(mk_fd_set_limit(before.rlim_cur, &limit), 0);
    assert_int_equal(limit, before.rlim_cur);
    /* A limit above the hard limit is rejected: the old limit stays, and is reported. */
    assert_true(mk_fd_set_limit((uint64_t)1 << 62, &limit) < 0);
    assert_int_equal(limit, before.rlim_cur);
}

static void fd_soft_limit_is_raised_and_restored(void **state)
{
    (void)state;
    struct rlimit before, now, low;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    mk_fd_restore_limit(); /* the limit has not been raised yet */
    low = (struct rlimit){.rlim_cur = 100, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    /* the second call finds a raised limit, which it must not save as the original */
    for (int i = 0; i < 2; i++) {
        mk_fd_raise_limit();
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
        assert_int_equal(now.rlim_cur, before.rlim_max < MK_FD_MAX ? before.rlim_max : MK_FD_MAX);
        assert_int_equal(now.rlim_max, before.rlim_max);
    }
    mk_fd_restore_limit();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(now.rlim_cur, 100);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void fd_count_includes_gaps(void **state)
{
    (void)state;
    unsigned before = mk_fd_count_open();
    int folder = open("/", O_PATH | O_CLOEXEC), high = fcntl(folder, F_DUPFD_CLOEXEC, 600);
    assert_true(folder >= 0);
    assert_true(high >= 600);
    assert_int_equal(mk_fd_count_open(), before + 2);
    close(folder);
    assert_int_equal(mk_fd_count_open(), before + 1);
    close(high);
    assert_int_equal(mk_fd_count_open(), before);
}

enum { LARGE = 1 << 20 };

static void *read_all(void *arg)
{
    char piece[1000];
    size_t total = 0;
    for (ssize_t n; (n = read(*(int *)arg, piece, sizeof piece)) > 0;)
        total += (size_t)n;
    return (void *)total;
}

static void fd_write_all_writes_everything(void **state)
{
    (void)state;
    int ends[2];
    pthread_t reader;
    void *total;
    char *large = test_calloc(1, LARGE);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pthread_create(&reader, NULL, read_all, &ends[0]), 0);
    assert_int_equal(mk_fd_write_all(ends[1], large, LARGE), 0); /* more than the pipe's buffer holds */
    close(ends[1]);
    pthread_join(reader, &total);
    assert_int_equal((size_t)total, LARGE);
    close(ends[0]);
    test_free(large);
}

static void fd_write_all_reports_error(void **state)
{
    (void)state;
    int full = open("/dev/full", O_WRONLY);
    assert_int_equal(mk_fd_write_all(full, "x", 1), -ENOSPC);
    assert_int_equal(mk_fd_write_all(full, "", 0), 0);
    close(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fd_close_twice_is_harmless),
        cmocka_unit_test(fd_flags_are_set),
        cmocka_unit_test(fd_limit_is_read_and_changed),
        cmocka_unit_test(fd_write_all_writes_everything),
        cmocka_unit_test(fd_write_all_reports_error),
        cmocka_unit_test(fd_soft_limit_is_raised_and_restored),
        cmocka_unit_test(fd_count_includes_gaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
