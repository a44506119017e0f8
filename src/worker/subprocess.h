/* SPDX-License-Identifier: Apache-2.0 */
/* Subprocesses of one worker (<monkey/subprocess.h>). The worker asks the spawner to start them, and receives
 * their exit statuses from it. */
#ifndef MK_WORKER_SUBPROCESS_H
#define MK_WORKER_SUBPROCESS_H

#include <monkey/subprocess.h>

#include "worker/subprocess_type.h"

/* Takes ownership of `spawner`; NULL: subprocesses are unavailable. */
mk_err mk_subprocesses_init(struct mk_subprocesses *c, struct mk_loop *loop, struct mk_log *log,
                            const struct mk_spawner *spawner) MK_MUST_USE;
/* Kills running subprocesses. No callback is called afterwards. */
void mk_subprocesses_fini(struct mk_subprocesses *c);
/* Call it when a child of this process has exited: reaps the child if it is the spawner. */
void mk_subprocesses_reap_spawner(struct mk_subprocesses *c);

#endif
