/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fd_passing.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "os/fd.h"
#include "unit/fixtures.h"
#include "unit/test.h"

static int a, b, fds[MK_FD_PASSING_MAX];
static char buffer[64];

static void setup(void)
{
    memset(fds, 0x7f, sizeof fds);
    fd_setup(&a);
    fd_setup(&b);
    assert_int_equal(mk_fd_passing_pair(&a, &b), 0);
}

static mk_err send_with_fds(int end, const char *text, const int *with, size_t n)
{
    const struct iovec v[] = {{.iov_base = (void *)(uintptr_t)text, .iov_len = 1},
                              {.iov_base = (void *)(uintptr_t)(text + 1), .iov_len = strlen(text) - 1}};
    return mk_fd_passing_send(end, v, 2, with, n);
}

static void fd_passing_parts_become_one_message(void **state)
{
    (void)state;
    assert_int_equal(send_with_fds(a, "hello", NULL, 0), 0);
    assert_int_equal(send_with_fds(a, "you", NULL, 0), 0);
    assert_int_equal(mk_fd_passing_receive(b, buffer, sizeof buffer, fds), 5);
    assert_memory_equal(buffer, "hello", 5);
    assert_int_equal(fds[0], -1);
    assert_int_equal(mk_fd_passing_receive(b, buffer, sizeof buffer, fds), 3);
    assert_int_equal(mk_fd_passing_receive(b, buffer, sizeof buffer, fds), -EAGAIN);
    mk_fd_close(&a);
    assert_int_equal(mk_fd_passing_receive(b, buffer, sizeof buffer, fds), -EPIPE);
    assert_int_equal(send_with_fds(b, "you", NULL, 0), -EPIPE);
}

static void fd_passing_descriptors_keep_order(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(send_with_fds(a, "two", (int[]){ends[1], ends[0]}, 2), 0);
    mk_fd_close(&ends[0]);
    mk_fd_close(&ends[1]);
    assert_int_equal(mk_fd_passing_receive(b, buffer, sizeof buffer, fds), 3);
    assert_true(fds[0] >= 0 && fds[1] >= 0 && fds[2] == -1);
    assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC && fcntl(fds[1], F_GETFD) & FD_CLOEXEC);
    assert_int_equal(write(fds[0], "x", 1), 1);
    assert_int_equal(read(fds[1], buffer, 1), 1);
    mk_fd_close(&fds[0]);
    mk_fd_close(&fds[1]);
}

static void fd_passing_oversized_message_closes_descriptors(void **state)
{
    (void)state;
    unsigned before = mk_fd_count_open();
    assert_int_equal(send_with_fds(a, "hello", (int[]){STDERR_FILENO, STDERR_FILENO, STDERR_FILENO}, 3), 0);
    assert_int_equal(mk_fd_passing_receive(b, buffer, 4, fds), -EMSGSIZE);
    assert_int_equal(mk_fd_count_open(), before);
    assert_int_equal(mk_fd_passing_receive(b, buffer, 4, fds), -EAGAIN);
}

static void fd_passing_at_descriptor_limit_receives_none(void **state)
{
    (void)state;
    struct rlimit r, small;
    unsigned before = mk_fd_count_open();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
    small = r;
    int next = dup(STDERR_FILENO); /* the next descriptor will have this number */
    close(next);
    small.rlim_cur = (rlim_t)next + 1;
    assert_int_equal(send_with_fds(a, "hello", (int[]){STDERR_FILENO, STDERR_FILENO}, 2), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
    ssize_t n = mk_fd_passing_receive(b, buffer, sizeof buffer, fds);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
    assert_int_equal(n, -EMSGSIZE);
    assert_int_equal(mk_fd_count_open(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(fd_passing_parts_become_one_message, setup),
        fixture_test(fd_passing_descriptors_keep_order, setup),
        fixture_test(fd_passing_oversized_message_closes_descriptors, setup),
        fixture_test(fd_passing_at_descriptor_limit_receives_none, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
