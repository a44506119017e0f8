/* SPDX-License-Identifier: Apache-2.0 */
/* A client in memory, from inside. */
#ifndef MK_TEST_CLIENT_TYPE_H
#define MK_TEST_CLIENT_TYPE_H

#include <monkey/test_client.h>

#include "lib/server_type.h"

struct mk_conn;
struct mk_http2_client;
struct mk_http2_client_ops;

struct mk_test_client {
    struct mk_end_hook end_hook; /* in the list of the runner */
    struct mk_server *server;    /* NULL: it was freed */
    struct mk_conn *conn;        /* NULL: closed */
    struct mk_loop_task task;    /* tells the connection of what was sent */
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

#endif
