/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of processes: CPUs, name, memory, parent, program file. */
#ifndef MK_OS_PROC_H
#define MK_OS_PROC_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* Returns the number of CPUs available to this process, at least 1. */
unsigned mk_proc_cpus(void);

/* Keeps other processes of the same user from reading our memory. Does nothing under AddressSanitizer, which
 * needs such access. */
void mk_proc_protect_memory(void);

/* Sets the name shown by `ps` and `top`, at most 15 characters. */
void mk_proc_set_name(const char *name);

/* Asks the kernel to send this process the signal when its parent dies; -ESRCH if the parent is already
 * dead. */
mk_err mk_proc_die_with_parent(pid_t parent, int signal) MK_MUST_USE;

/* Has a debugger or SIGSTOP stopped the process? */
bool mk_proc_is_stopped(pid_t pid);

/* Was this program's file replaced since the program started, for example by an installation or a build? Its
 * plugins may then belong to the new program. False if unknown. */
bool mk_proc_executable_is_replaced(void);

#endif
