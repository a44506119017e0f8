/* SPDX-License-Identifier: Apache-2.0 */
/* Lets a program pause accepting connections, for example while a backend is overloaded. */
#include <monkey/server.h>

#include "worker/worker.h"

static void hold_accepting(struct mk_worker *w, void *ctx)
{
    (void)ctx;
    mk_worker_hold_accepting(w, MK_WORKER_HOLD_PROGRAM, true);
}

static void continue_accepting(struct mk_worker *w, void *ctx)
{
    (void)ctx;
    mk_worker_hold_accepting(w, MK_WORKER_HOLD_PROGRAM, false);
}

int mk_server_pause_accepting(struct mk_server *s)
{
    return mk_server_post(s, hold_accepting, NULL, NULL);
}

int mk_server_resume_accepting(struct mk_server *s)
{
    return mk_server_post(s, continue_accepting, NULL, NULL);
}
