/* SPDX-License-Identifier: Apache-2.0 */
/* A function that runs in a child process, because it changes the process. */
#ifndef MK_UNIT_CHILD_H
#define MK_UNIT_CHILD_H

#include <sys/wait.h>
#include <unistd.h>

#include "unit/test.h"

/* The exit code of a child that does that; 255 when it dies otherwise. */
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
