/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/conn_attempt.h"

void mk_conn_attempt_begin(struct mk_upstream_conn *c, struct mk_attempt *attempt, mk_str server)
{
    c->attempt = attempt;
    attempt->server = server;
    mk_sockaddr_to_addr(&c->to, &attempt->address);
    if (c->state.current == MK_UPSTREAM_CONN_OPEN)
        attempt->connected_us = attempt->began_us;
}
