/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of a test that stays open after the head of the response. */
#ifndef DUDA_DEV_TESTER_STREAM_H
#define DUDA_DEV_TESTER_STREAM_H

#include "test_type.h"

struct tester_conn {
    struct mk_test_client *client;
    size_t taken;     /* bytes of mk_test_client_received() that are in `in` already */
    struct mk_buf in; /* received bytes */
    bool is_closed;   /* by the server */
};

/* Sends the request, and waits for the head of the response. On failure, marks the test as failed and returns
 * false. Always close the connection. */
bool tester_conn_open(struct tester_conn *c, struct duda_test *t, const struct duda_test_request *request,
                      struct duda_test_response *head);
/* Runs the server until more bytes arrive. Returns false if the server has closed the connection, or at that
 * real time. */
bool tester_conn_wait(struct tester_conn *c, uint64_t until_ms);
void tester_conn_close(struct tester_conn *c);

#endif
