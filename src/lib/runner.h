/* SPDX-License-Identifier: Apache-2.0 */
/* One worker of an embedded server, and the thread that turns its loop. */
#ifndef MK_LIB_RUNNER_H
#define MK_LIB_RUNNER_H

#include "lib/server_type.h"

/* In the thread that turns the loop. On failure nothing is left. */
mk_err mk_runner_begin(struct mk_runner *r) MK_MUST_USE;
void mk_runner_end(struct mk_runner *r);

/* Is the calling thread below a function of this server? */
bool mk_runner_is_inside(const struct mk_server *s);
/* The calling thread enters, or leaves, functions of the server. */
void mk_runner_enter(struct mk_runner *r);
void mk_runner_leave(struct mk_runner *r);

/* In the thread that turns the loop, or where it does not run. */
void mk_runner_add_end_hook(struct mk_runner *r, struct mk_end_hook *h);
void mk_runner_remove_end_hook(struct mk_runner *r, struct mk_end_hook *h);

#endif
