/* SPDX-License-Identifier: Apache-2.0 */
/* A client in memory, from inside. */
#ifndef MK_LIB_PROBE_TYPE_H
#define MK_LIB_PROBE_TYPE_H

#include <monkey/probe.h>

#include "net/loop.h"

struct mk_conn;
struct mk_http2_client;
struct mk_http2_client_ops;
struct mk_runner;

struct mk_probe {
    struct mk_probe *next;    /* of the runner */
    struct mk_server *server; /* NULL: it was freed */
    struct mk_conn *conn;     /* NULL: closed */
    struct mk_task task;      /* tells the connection of what was sent */
    bool task_set;
    bool has_ended;                          /* the client sends no more */
    bool is_shut;                            /* nor does the server */
    struct mk_buf sent;                      /* by the client, and not read yet */
    struct mk_buf heard;                     /* from the server, and not used yet */
    struct mk_buf head;                      /* of the last answer */
    struct mk_buf content;                   /* of the last answer */
    const struct mk_http2_client_ops *http2; /* NULL: it asks over HTTP/1.1 */
    struct mk_http2_client *client;          /* NULL: the connection has not been asked over HTTP/2 */
};

static inline void mk_probe_unlink(struct mk_probe **first, struct mk_probe *p)
{
    while (*first && *first != p)
        first = &(*first)->next;
    if (*first)
        *first = p->next;
}

/* The worker of these has ended, and with it their connections. */
static inline void mk_probe_orphan(struct mk_probe *first)
{
    for (struct mk_probe *p = first; p; p = p->next) {
        p->conn = NULL;
        p->server = NULL;
    }
}

#endif
