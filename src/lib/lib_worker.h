/* SPDX-License-Identifier: Apache-2.0 */
/* One worker of an embedded server, and the thread that turns its loop. */
#ifndef MK_LIB_LIB_WORKER_H
#define MK_LIB_LIB_WORKER_H

#include "lib/server_type.h"

/* In the thread that turns the loop. On failure nothing is left. */
mk_err mk_lib_worker_start(struct mk_lib_worker *r) MK_MUST_USE;
void mk_lib_worker_stop(struct mk_lib_worker *r);

/* Is the calling thread below a function of this server? */
bool mk_lib_worker_is_in_call(const struct mk_server *s);
/* The calling thread enters, or leaves, functions of the server. */
void mk_lib_worker_enter(struct mk_lib_worker *r);
void mk_lib_worker_leave(struct mk_lib_worker *r);

/* In the thread that turns the loop, or where it does not run. */
void mk_lib_worker_add_end_hook(struct mk_lib_worker *r, struct mk_end_hook *h);
void mk_lib_worker_remove_end_hook(struct mk_lib_worker *r, struct mk_end_hook *h);

#endif
