/* SPDX-License-Identifier: Apache-2.0 */
/* Connections before their first request, for on_accept. */
#ifndef MONKEY_CONNECTION_H
#define MONKEY_CONNECTION_H

#include <monkey/addr.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mk_worker;

/** A connection before its first request, as on_accept sees it. Valid during the hook. */
struct mk_conn;

/** The peer. */
MK_API const struct mk_addr *mk_conn_client_addr(const struct mk_conn *c);
/** Replaces the peer with the client it forwards for: limits, logs and plugins see the client from now on. 0;
 * -EDQUOT: the client has too many open connections (the hook should REFUSE); -ENOMEM. */
MK_API int mk_conn_set_client_addr(struct mk_conn *c, const struct mk_addr *peer);
/** The client speaks TLS with the proxy that forwards for it: "https" is the scheme of all requests. */
MK_API void mk_conn_set_secure(struct mk_conn *c);
/** Received bytes that were not yet consumed. The hook is called right after the connection was accepted, so
 * this is empty at first. If the hook returns MK_WAIT, the server reads input and calls it again whenever
 * more has arrived: at most 64 KB, within 5 seconds, or Timeout if that is shorter. Until all hooks have let
 * it in, a connection does not count for the address of its client. */
MK_API mk_str mk_conn_peek(struct mk_conn *c);
/** Consumes the first n of these bytes, or all if there are fewer. The request begins after them. */
MK_API void mk_conn_consume(struct mk_conn *c, size_t n);
/** The worker that serves it. */
MK_API struct mk_worker *mk_conn_worker(const struct mk_conn *c);

#ifdef __cplusplus
}
#endif

#endif
