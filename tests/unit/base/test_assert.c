/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/test.h"

static void die(void)
{
    int one = 1;
    MK_ASSERT(one == 2);
}

/* Runs die() in a child: how it ended, and what it said. */
static int watch_it_die(char *said, size_t cap)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        die();
        _exit(0);
    }
    close(ends[1]);
    size_t len = 0;
    for (ssize_t n; len < cap - 1 && (n = read(ends[0], said + len, cap - 1 - len)) > 0;)
        len += (size_t)n;
    said[len] = '\0';
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void what_is_true_passes(void **state)
{
    (void)state;
    int n = 0;
    MK_ASSERT(++n == 1);
    assert_int_equal(n, 1);
}

static void a_bug_ends_the_process_and_says_where(void **state)
{
    (void)state;
    char said[512];
    int status = watch_it_die(said, sizeof said);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(said, "monkey: bug: one == 2 is not true ("));
    assert_non_null(strstr(said, "test_assert.c:"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_true_passes),
        cmocka_unit_test(a_bug_ends_the_process_and_says_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
