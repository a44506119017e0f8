/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/conn_attempt.h"

void mk_conn_attempt_begin(struct mk_upstream_conn *c, mk_str server)
{
    struct mk_attempt *a = mk_request_add_attempt(c->options.request);
    c->attempt = a;
    if (!a)
        return;
    a->server = server;
    mk_sockaddr_to_addr(&c->to, &a->address);
    if (c->state.current == MK_UPSTREAM_CONN_OPEN)
        a->connected_us = a->began_us;
}
