/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a function in a child process, for tests that change process-wide state. */
#ifndef MK_UNIT_CHILD_H
#define MK_UNIT_CHILD_H

#include <sys/wait.h>
#include <unistd.h>

#include "unit/test.h"

/* Returns the exit code of body(), or 255 if the child died of a signal. */
static inline int in_child(int (*body)(void))
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(body());
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

#endif
