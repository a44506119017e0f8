/* SPDX-License-Identifier: Apache-2.0 */
/* Records the attempts of a request (monkey/attempt.h): each connection to a server is one. The functions
 * below do nothing if the attempt is not recorded. */
#ifndef MK_UPSTREAM_CONN_ATTEMPT_H
#define MK_UPSTREAM_CONN_ATTEMPT_H

#include <monkey/attempt.h>

#include "upstream/conn.h"

/* Call it when the connection has a request, which records the attempt, and a server, and is open or being
 * opened. */
void mk_conn_attempt_begin(struct mk_upstream_conn *c, struct mk_attempt *attempt, mk_str server);

/* Call it when the connection is open. */
static inline void mk_conn_attempt_connected(struct mk_upstream_conn *c)
{
    if (c->attempt)
        c->attempt->connected_us = mk_clock_us();
}

/* Call it when the connection is no longer used by the request. `error`: why it failed; 0: it did not. */
static inline void mk_conn_attempt_end(struct mk_upstream_conn *c, int error)
{
    if (!c->attempt)
        return;
    c->attempt->ended_us = mk_clock_us();
    c->attempt->error = error;
    c->attempt = NULL;
}

#endif
