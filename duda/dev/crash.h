/* SPDX-License-Identifier: Apache-2.0 */
/* In a worker that runs services under development: says where it crashed, on standard error. */
#ifndef DUDA_DEV_CRASH_H
#define DUDA_DEV_CRASH_H

#include "trace/backtrace.h"

/* A report is a line DEV_CRASH_HEAD with signal and address, and DEV_CRASH_OVERFLOW if the stack is full, or with DEV_CRASH_EXIT
 * and the code that exit() was called with; and then, from the innermost on, a line
 * DEV_CRASH_FRAME for each frame: the file, the offset in it (of the instruction behind the call, but for the
 * first one), and the function if it is known; then a line DEV_CRASH_END. */
#define DEV_CRASH_HEAD  "duda-dev: crash "
#define DEV_CRASH_FRAME DUDA_BACKTRACE_FRAME
#define DEV_CRASH_END   DUDA_BACKTRACE_END

#define DEV_CRASH_OVERFLOW "overflow"
#define DEV_CRASH_EXIT     "exit"

/* Ahead of that, while the process may still load libraries. */
void dev_crash_preload(void);
/* 0 or a negated errno value. */
int dev_crash_install_handlers(void);
/* From here on exit() is no crash. */
void dev_crash_ignore_exit(void);

#endif
