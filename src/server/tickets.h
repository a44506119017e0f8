/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of session tickets: made by the master, in memory that it shares with its workers, and written
 * nowhere. */
#ifndef MK_SERVER_TICKETS_H
#define MK_SERVER_TICKETS_H

#include "base/err.h"
#include "net/tls.h"
#include "server/shared.h"

/* Those of the server, which outlive generations; they have a key. NULL: no memory, or no chance. */
struct mk_tls_tickets *mk_tickets_take(struct mk_shared *shared) MK_MUST_USE;
/* A new key; the one before is still understood. On an error nothing has changed. */
mk_err mk_tickets_rotate(struct mk_tls_tickets *t) MK_MUST_USE;

#endif
