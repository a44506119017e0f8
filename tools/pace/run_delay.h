/* SPDX-License-Identifier: Apache-2.0 */
/* How long this thread could have run, but others had its processor. */
#ifndef PACE_RUN_DELAY_H
#define PACE_RUN_DELAY_H

#include "base/compiler.h"

/* -1 if the kernel does not count it. Close it with mk_fd_close(). */
int pace_run_delay_open(void);
/* Nanoseconds since the thread began; 0 if they are not known. */
uint64_t pace_run_delay_read(int fd);

#endif
