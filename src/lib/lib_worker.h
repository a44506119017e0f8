/* SPDX-License-Identifier: Apache-2.0 */
/* One worker of an embedded server, and the thread that runs its loop. */
#ifndef MK_LIB_LIB_WORKER_H
#define MK_LIB_LIB_WORKER_H

#include "lib/server_type.h"

/* Starts the worker; cleans up on failure. Call it only in the thread that runs the loop. */
mk_err mk_lib_worker_start(struct mk_lib_worker *r) MK_MUST_USE;
void mk_lib_worker_stop(struct mk_lib_worker *r);

/* Is the calling thread inside a function of this server? */
bool mk_lib_worker_is_in_call(const struct mk_server *s);
/* Call these when the calling thread enters or leaves functions of the server. */
void mk_lib_worker_enter(struct mk_lib_worker *r);
void mk_lib_worker_leave(struct mk_lib_worker *r);

/* Adds a hook that runs when the worker ends. Call it only in the thread that runs the loop, or while the
 * loop is not running. */
void mk_lib_worker_add_end_hook(struct mk_lib_worker *r, struct mk_end_hook *h);
void mk_lib_worker_remove_end_hook(struct mk_lib_worker *r, struct mk_end_hook *h);

#endif
