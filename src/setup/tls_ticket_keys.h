/* SPDX-License-Identifier: Apache-2.0 */
/* Session ticket keys: created by the master in memory shared with its workers, never written to disk. */
#ifndef MK_SETUP_TLS_TICKET_KEYS_H
#define MK_SETUP_TLS_TICKET_KEYS_H

#include "base/err.h"
#include "event/tls.h"
#include "setup/shared_state.h"

/* Returns the server's keys, which outlive generations, and creates the first key if necessary. NULL: out of
 * memory, or no random bytes. */
struct mk_tls_tickets *mk_tls_ticket_keys_get(struct mk_shared_state *shared) MK_MUST_USE;
/* Creates a new key; tickets of the previous key stay valid. On error, nothing changes. */
mk_err mk_tls_ticket_keys_rotate(struct mk_tls_tickets *t) MK_MUST_USE;

#endif
