/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the in-memory test client, and its connection. */
#ifndef MK_TEST_CLIENT_H
#define MK_TEST_CLIENT_H

#include <monkey/test_client.h>

#include "base/err.h"
#include "lib/server_type.h"

struct mk_conn;
struct mk_http2_client;
struct mk_http2_client_ops;

struct mk_test_client {
    struct mk_end_hook end_hook; /* in the worker's list of end hooks */
    struct mk_server *server;    /* NULL: its worker has ended */
    struct mk_conn *conn;        /* NULL: closed */
    struct mk_loop_task task;    /* notifies the connection of sent data */
    bool task_set;
    bool has_ended;                          /* the client has closed its sending side */
    bool is_shut;                            /* the server has closed its sending side */
    struct mk_buf sent;                      /* sent by the client, but not read by the server yet */
    struct mk_buf received;                  /* received from the server, but not processed yet */
    struct mk_buf head;                      /* head of the last response */
    struct mk_buf content;                   /* content of the last response */
    const struct mk_http2_client_ops *http2; /* NULL: HTTP/1.1 */
    struct mk_http2_client *client;          /* NULL: HTTP/2 was not used on this connection */
};

/* Opens a new connection if the previous one was closed. */
mk_err mk_test_client_reconnect(struct mk_test_client *p) MK_MUST_USE;

#endif
