/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of session tickets: the master makes them in memory that it shares with its workers, and never
 * writes them to disk. */
#ifndef MK_SETTINGS_TLS_TICKET_KEYS_H
#define MK_SETTINGS_TLS_TICKET_KEYS_H

#include "base/err.h"
#include "net/tls.h"
#include "settings/shared_state.h"

/* The server's keys, which outlive generations; there is at least one. NULL: no memory or no random bytes. */
struct mk_tls_tickets *mk_tls_ticket_keys_get(struct mk_shared_state *shared) MK_MUST_USE;
/* Makes a new key; tickets of the previous one stay valid. On an error nothing has changed. */
mk_err mk_tls_ticket_keys_rotate(struct mk_tls_tickets *t) MK_MUST_USE;

#endif
