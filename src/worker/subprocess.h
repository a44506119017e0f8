/* SPDX-License-Identifier: Apache-2.0 */
/* The other programs of one worker, as <monkey/subprocess.h> offers them: asks the spawner to start them, and
 * receives their exit statuses. */
#ifndef MK_WORKER_SUBPROCESS_H
#define MK_WORKER_SUBPROCESS_H

#include <monkey/subprocess.h>

#include "worker/subprocess_type.h"

/* Takes ownership of `spawner`; NULL: no program can be started. */
mk_err mk_subprocesses_init(struct mk_subprocesses *c, struct mk_loop *loop, struct mk_log *log,
                            const struct mk_spawner *spawner) MK_MUST_USE;
/* Kills the running ones. No callback is called after this. */
void mk_subprocesses_fini(struct mk_subprocesses *c);
/* A child of this process has ended: reaps it if it was the spawner. */
void mk_subprocesses_reap_spawner(struct mk_subprocesses *c);

#endif
