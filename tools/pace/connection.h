/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to the server: its socket, and the progress of the current request and response.
 * load_generator.h schedules requests and counts results. */
#ifndef PACE_CONNECTION_H
#define PACE_CONNECTION_H

#include "base/list.h"
#include "http/response_parser.h"
#include "os/sockaddr.h"
#include "pace/poller.h"
#include "pace/response_check.h"

enum pace_phase { PACE_CLOSED, PACE_CONNECTING, PACE_SENDING, PACE_WAITING, PACE_IDLE };

struct pace_connection {
    struct mk_list link;  /* element of the load generator's list for the connection's state */
    struct mk_list again; /* element of the list of sockets with unread data */
    int fd;
    enum pace_phase phase;
    bool used;    /* a response has arrived on this connection */
    bool retried; /* the request is a retry on a new connection */
    uint64_t due, begun, free_since;
    uint64_t own; /* upper bound of pace's own share of the latency, in ns */
    size_t sent;
    struct mk_response_parser reply;
    struct pace_comparison comparison;
};

void pace_connection_init(struct pace_connection *c);
/* Starts a non-blocking connect; `phase` becomes PACE_CONNECTING. */
mk_err pace_connection_open(struct pace_connection *c, const struct mk_sockaddr *to,
                            struct pace_poller *w) MK_MUST_USE;
/* Checks the result of the connect once the socket is writable or has failed; on success, `phase` becomes
 * PACE_SENDING. */
mk_err pace_connection_finish_open(struct pace_connection *c) MK_MUST_USE;
/* Sends as much as the socket accepts; `phase` becomes PACE_WAITING once the whole request is sent. */
mk_err pace_connection_send(struct pace_connection *c, mk_str request) MK_MUST_USE;
/* Resets the request and response state for the next request. */
void pace_connection_reset_response(struct pace_connection *c);
/* Closes the connection; `hard`: with RST, because the server may still be sending. */
void pace_connection_close(struct pace_connection *c, bool hard);

#endif
