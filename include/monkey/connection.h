/* SPDX-License-Identifier: Apache-2.0 */
/* Connections before their first request, for on_accept. */
#ifndef MONKEY_CONNECTION_H
#define MONKEY_CONNECTION_H

#include <monkey/addr.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mk_worker;

/** A connection before its first request, as passed to on_accept. Valid during the hook. */
struct mk_conn;

/** The address of the client. */
MK_API const struct mk_addr *mk_conn_client_addr(const struct mk_conn *conn);
/** Replaces the address of the proxy with that of the client whose connection the proxy forwards. Limits,
 * logs and plugins then see that client. Returns 0; -EDQUOT if the client has too many open connections (the
 * hook should return MK_ERROR); or -ENOMEM. */
MK_API int mk_conn_set_client_addr(struct mk_conn *conn, const struct mk_addr *peer);
/** Declares that the client uses TLS on its connection to the proxy: the scheme of all requests is then
 * "https". */
MK_API void mk_conn_set_secure(struct mk_conn *conn);
/** The bytes received but not yet consumed; valid until the hook consumes bytes or returns. The hook first
 * runs right after the connection was accepted, before any bytes have arrived. If the hook returns MK_WAIT,
 * the server reads input and calls the hook again as more arrives: at most 64 KB, within 5 seconds, or
 * HeaderTimeout if that is shorter. The connection does not count against the limits of its client address
 * until all hooks have accepted it. */
MK_API mk_str mk_conn_peek(struct mk_conn *conn);
/** Consumes the first n bytes, or all if there are fewer. The request starts after them. */
MK_API void mk_conn_consume(struct mk_conn *conn, size_t n);
/** The worker that serves the connection. */
MK_API struct mk_worker *mk_conn_worker(const struct mk_conn *conn);

#ifdef __cplusplus
}
#endif

#endif
