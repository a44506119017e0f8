/* SPDX-License-Identifier: Apache-2.0 */
/* Runs code that fails an MK_ASSERT in a child process, so that the test survives. */
#ifndef MK_UNIT_DEATH_H
#define MK_UNIT_DEATH_H

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/test.h"

/* Runs die(ctx) in a child and returns its wait status, as waitpid() does; `said` receives its stderr. */
static inline int watch_it_die(void (*die)(void *ctx), void *ctx, char *said, size_t cap)
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
    for (ssize_t n; len < cap - 1 && (n = read(ends[0], said + len, cap - 1 - len)) > 0;)
        len += (size_t)n;
    said[len] = '\0';
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Asserts that die(ctx) aborts at an MK_ASSERT whose condition contains `words`. */
static inline void assert_bug(void (*die)(void *ctx), void *ctx, const char *words)
{
    char said[1024];
    int status = watch_it_die(die, ctx, said, sizeof said);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(said, "monkey: bug: ") ||
        !strstr(said, words))
        fail_msg("no bug about \"%s\": status %d, \"%s\"", words, status, said);
}

#endif
