/* SPDX-License-Identifier: Apache-2.0 */
/* Run-queue wait time of this thread (schedstat): it was runnable, but other threads had the CPU. */
#ifndef PACE_RUN_DELAY_H
#define PACE_RUN_DELAY_H

#include "base/compiler.h"

/* Returns a descriptor, to be closed with mk_fd_close(), or -1 if the kernel does not measure the run
 * delay. */
int pace_run_delay_open(void);
/* Returns ns since the start of the thread; 0 if unknown. */
uint64_t pace_run_delay_read(int fd);

#endif
