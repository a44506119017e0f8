/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long each iteration of a worker's event loop takes, because other events wait until it ends.
 * Iterations are measured only if mk_worker_busy_init() sets a limit or mk_worker_measure_loop() (see
 * monkey/worker.h) sets a histogram. */
#ifndef MK_WORKER_WORKER_BUSY_H
#define MK_WORKER_WORKER_BUSY_H

#include <monkey/worker.h>

/* Logs iterations that take at least `slow_loop_ms`; 0: none. */
void mk_worker_busy_init(struct mk_worker *w, uint32_t slow_loop_ms);

#endif
