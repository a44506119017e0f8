/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a server to stop what a connection has under way, over a connection of its own. */
#ifndef DUDA_POSTGRES_CANCEL_H
#define DUDA_POSTGRES_CANCEL_H

#include <libpq-fe.h>
#include <monkey/worker.h>

struct postgres_cancel;

/* on_done(ctx) is called in the loop when the server has been told, or cannot be; NULL: it need not be. NULL:
 * no memory, or no thread. */
struct postgres_cancel *postgres_cancel_start(struct mk_worker *w, PGconn *pg, void (*on_done)(void *ctx),
                                              void *ctx);
/* on_done will not be called. NULL is fine. */
void postgres_cancel_detach(struct postgres_cancel *c);

#endif
