/* SPDX-License-Identifier: Apache-2.0 */
/* Reports crashes on standard error, in a worker that runs services under development. */
#ifndef DUDA_DEV_CRASH_H
#define DUDA_DEV_CRASH_H

#include "trace/backtrace.h"

/* A report begins with a DEV_CRASH_HEAD line, which contains the signal and the address, followed by
 * DEV_CRASH_OVERFLOW after a stack overflow; or else DEV_CRASH_EXIT and the argument of exit(). Then there is
 * a DEV_CRASH_FRAME line for each frame, innermost first: the file, the offset in it (of the return address,
 * except in the first frame), and the function if known. A DEV_CRASH_END line ends the report. */
#define DEV_CRASH_HEAD  "duda-dev: crash "
#define DEV_CRASH_FRAME DUDA_BACKTRACE_FRAME
#define DEV_CRASH_END   DUDA_BACKTRACE_END

#define DEV_CRASH_OVERFLOW "overflow"
#define DEV_CRASH_EXIT     "exit"

/* The beginning of a line before the frames, which names the running handler. A report has no such line if no
 * handler was running. */
#define DEV_CRASH_RUNNING "duda-dev: ran "

/* Call it before dev_crash_install_handlers(), while the process may still load libraries. */
void dev_crash_preload(void);
/* `running` may be NULL. Returns 0 or a negated errno value. */
int dev_crash_install_handlers(const struct duda_backtrace_running *running);
/* From now on, exit() does not count as a crash. */
void dev_crash_ignore_exit(void);

#endif
