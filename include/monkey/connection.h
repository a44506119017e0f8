/* SPDX-License-Identifier: Apache-2.0 */
/* Connections before their first request, for on_accept. */
#ifndef MONKEY_CONNECTION_H
#define MONKEY_CONNECTION_H

#include <monkey/address.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mk_worker;

/** A connection before its first request, as on_accept sees it. Valid during the hook. */
struct mk_conn;

/** Who is at the other end. */
MK_API const struct mk_peer *mk_conn_peer(const struct mk_conn *c);
/** The peer speaks for somebody else: limits, logs and plugins see that one from now on. -EDQUOT: he has too
 * many connections open (the hook should REFUSE); -ENOMEM. */
MK_API int mk_conn_set_peer(struct mk_conn *c, const struct mk_peer *peer);
/** What the peer has sent and nobody has taken. The hook is called as soon as the connection is there, so
 * this is empty at first: input is read when the hook answers MK_WAIT, which calls it again each time that
 * more came (at most 64 KB, within the time of a request head). */
MK_API mk_str mk_conn_peek(struct mk_conn *c);
/** Takes the first n bytes of that away, so that the request begins behind them. All that is there if n is
 * more. */
MK_API void mk_conn_take(struct mk_conn *c, size_t n);
/** The worker that has it. */
MK_API struct mk_worker *mk_conn_worker(const struct mk_conn *c);

#ifdef __cplusplus
}
#endif

#endif
