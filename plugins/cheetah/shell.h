/* SPDX-License-Identifier: Apache-2.0 */
/* The shell in one worker: it accepts sessions from the socket that all workers share. */
#ifndef CHEETAH_SHELL_H
#define CHEETAH_SHELL_H

#include "shell_type.h"

int cheetah_worker_start(struct mk_worker *worker, void *data);
void cheetah_worker_stop(struct mk_worker *worker, void *data);

#endif
