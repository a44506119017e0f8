/* SPDX-License-Identifier: Apache-2.0 */
/* Cancels the running statement of a connection, over a separate connection. */
#ifndef DUDA_POSTGRES_CANCEL_H
#define DUDA_POSTGRES_CANCEL_H

#include <libpq-fe.h>
#include <monkey/worker.h>

struct postgres_cancel;

/* Calls on_done(ctx) in the loop when the cancel request has been sent or has failed; on_done may be NULL.
 * Returns NULL if no memory or no thread is available. */
struct postgres_cancel *postgres_cancel_start(struct mk_worker *w, PGconn *pg, void (*on_done)(void *ctx),
                                              void *ctx);
/* Prevents the call of on_done(). `c` may be NULL. */
void postgres_cancel_detach(struct postgres_cancel *c);

#endif
