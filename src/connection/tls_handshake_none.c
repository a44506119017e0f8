/* SPDX-License-Identifier: Apache-2.0 */
/* A server without TLS. The configuration has no address that requires TLS, so no connection gets here; if
 * one does, it is reset. */
#include "connection/tls_handshake.h"

void mk_tls_handshake_serve(struct mk_conn *c)
{
    mk_conn_reset(c, MK_OUTCOME_REJECTED);
    mk_conn_end_serving(c);
}

static void on_event(struct mk_conn *c)
{
    mk_conn_begin_serving(c);
    mk_tls_handshake_serve(c);
}

static void on_handshake_timeout(struct mk_conn *c, enum mk_conn_timeout timeout)
{
    (void)timeout;
    mk_conn_close(c, MK_OUTCOME_TIMEOUT);
}

static void on_close(struct mk_conn *c, enum mk_outcome outcome)
{
    (void)c;
    (void)outcome;
}

const struct mk_conn_ops mk_tls_handshake_ops = {
    .advance = on_event, .on_timeout = on_handshake_timeout, .on_close = on_close};
