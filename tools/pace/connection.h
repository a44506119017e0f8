/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to the server and the request on it: its socket and what has been sent and received. What a
 * request waits for and what becomes of it is load.h's. */
#ifndef PACE_CONNECTION_H
#define PACE_CONNECTION_H

#include "base/list.h"
#include "http/response_parser.h"
#include "os/sockaddr.h"
#include "pace/poller.h"
#include "pace/response_check.h"

enum pace_phase { PACE_CLOSED, PACE_CONNECTING, PACE_SENDING, PACE_WAITING, PACE_IDLE };

struct pace_connection {
    struct mk_list link;  /* among those of its kind */
    struct mk_list again; /* among those that have more to read than one turn allows */
    int fd;
    enum pace_phase phase;
    bool used;    /* an answer came over it already */
    bool retried; /* its request was sent before, over another one */
    uint64_t due, begun, free_since;
    uint64_t own; /* of the time since its request was due: for so long the client may have been the reason */
    size_t sent;
    struct mk_response_parser reply;
    struct pace_comparison comparison;
};

void pace_connection_init(struct pace_connection *c);
/* Begins to connect: PACE_CONNECTING. */
mk_err pace_connection_open(struct pace_connection *c, const struct mk_sockaddr *to,
                            struct pace_poller *w) MK_MUST_USE;
/* Is it there now? Only when the socket can be written to, or has failed: then PACE_SENDING. */
mk_err pace_connection_finish_open(struct pace_connection *c) MK_MUST_USE;
/* Sends what the socket takes; PACE_WAITING when that was all. */
mk_err pace_connection_send(struct pace_connection *c, mk_str request) MK_MUST_USE;
/* Forgets the request that was on it, to take the next one. */
void pace_connection_reset(struct pace_connection *c);
/* Closes; `hard`: with a reset, since the server may still be sending. */
void pace_connection_close(struct pace_connection *c, bool hard);

#endif
