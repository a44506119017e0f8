/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates that are read, or even obtained, when a client requests their name: see struct
 * mk_tls_on_demand. */
#ifndef MK_TLS_ON_DEMAND_H
#define MK_TLS_ON_DEMAND_H

#include "tls/context_type.h"
#include "tls/stream_type.h"

/*
 * Selects the certificate that the connection presents for the name, which is safe as a file name. 0: done.
 * -EINPROGRESS: the handshake waits; call this again in the next call of the ClientHello callback. -ENOENT: there is
 * no certificate. -ENOMEM.
 */
mk_err mk_tls_on_demand_apply(struct mk_tls *t, const struct mk_tls_context *c, const char *name);
/* Ends the wait of a handshake, if it waits, because its connection is being closed. */
void mk_tls_on_demand_cancel(struct mk_tls *t);

#endif
