/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a function in a child process, because it changes process-wide state or because an MK_ASSERT fails. */
#ifndef MK_UNIT_CHILD_H
#define MK_UNIT_CHILD_H

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/test.h"

/* Returns the exit code of body(), or 255 if the child died of a signal. */
static inline int run_in_child(int (*body)(void))
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(body());
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* Runs die(ctx) in a child and returns its wait status as waitpid() reports it. Stores the stderr of the
 * child in `output`. */
static inline int run_in_dying_child(void (*die)(void *ctx), void *ctx, char *output, size_t cap)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        die(ctx);
        _exit(0);
    }
    close(ends[1]);
    size_t len = 0;
    for (ssize_t n; len < cap - 1 && (n = read(ends[0], output + len, cap - 1 - len)) > 0;)
        len += (size_t)n;
    output[len] = '\0';
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Asserts that die(ctx) aborts at an MK_ASSERT whose condition contains `words`. */
static inline void assert_aborts(void (*die)(void *ctx), void *ctx, const char *words)
{
    char output[1024];
    int status = run_in_dying_child(die, ctx, output, sizeof output);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(output, "monkey: bug: ") ||
        !strstr(output, words))
        fail_msg("no bug about \"%s\": status %d, \"%s\"", words, status, output);
}

#endif
