/* SPDX-License-Identifier: Apache-2.0 */
/* An in-memory client for tests of programs that use libmonkey. Only the archive libmonkey-test
 * contains it, together with all of libmonkey; libmonkey itself and the program monkey do not. */
#ifndef MONKEY_TEST_CLIENT_H
#define MONKEY_TEST_CLIENT_H

#include <monkey/server.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A connection to a server in the same program that needs no socket, port or thread. Its requests pass
 * through the complete server, as HTTP/1.1 or HTTP/2 from a client at 127.0.0.1.
 *
 *     struct mk_test_client_response response;
 *     struct mk_test_client *client = mk_test_client_open(s);
 *     if (mk_test_client_request(client, "GET", "/hello", NULL, 0, MK_STR_NULL, &response) == 0)
 *         check(response.status, response.body);
 *     mk_test_client_close(client);
 *
 * The program must run the server with mk_server_step(), or must not have started it yet. Call these
 * functions in the server's thread, and never from a handler. While a call waits, it steps the server.
 */
struct mk_test_client;

/** The response of the server; valid until the next call for this client. */
struct mk_test_client_response {
    unsigned status;
    mk_str headers;       /**< headers, one line each: "Name: value\r\n" */
    mk_str body;          /**< the body, without transfer coding */
    uint64_t reserved[4]; /**< for later releases */
};

/** Opens a connection, and starts the server if necessary. On failure, returns NULL: see
 * mk_server_error(). */
MK_API struct mk_test_client *mk_test_client_open(struct mk_server *server) MK_API_MUST_USE;

/**
 * Makes mk_test_client_request() use HTTP/2 from now on, with prior knowledge (RFC 9113, section 3.3). An
 * open connection is closed. Header names in responses are then in lower case, as sent. Request headers
 * that have no meaning in HTTP/2, such as Connection, are sent unchanged.
 *
 * Returns 0; -EOPNOTSUPP if the library has no HTTP/2, or [SERVER] sets `HTTP2 off`; or -EINVAL, -ESHUTDOWN
 * or -EBUSY as for mk_test_client_request().
 */
MK_API int mk_test_client_use_http2(struct mk_test_client *client);

/**
 * Sends a request, and waits for the complete response. `headers` holds n headers. The client adds Host if it
 * is missing, and Content-Length if there is a body. If the server closed the connection after the last
 * response, the client opens a new one.
 *
 * Returns 0; -EINVAL if the request is invalid; -ETIMEDOUT if no response arrived within 30 seconds;
 * -ECONNRESET if the server closed the connection before the response was complete; -EBADMSG if the response
 * is malformed; -ESHUTDOWN if the server has stopped; -EBUSY if called from the wrong context; -ENOMEM; or
 * -EINVAL if the client is NULL or was closed (only debug builds of the library detect the latter).
 */
MK_API int mk_test_client_request(struct mk_test_client *client, const char *method, const char *target,
                                  const struct mk_header *headers, size_t n, mk_str body,
                                  struct mk_test_client_response *response);

/** The value of the first header with that name (case-insensitive); absent if there is none. */
MK_API mk_str mk_test_client_header(const struct mk_test_client_response *response, mk_str name);

/** Sends raw bytes, for tests of anything other than complete requests. The server reads them when it is
 * stepped. Returns 0; -ENOMEM; -EINVAL; or -ECONNRESET if the connection is closed. */
MK_API int mk_test_client_send(struct mk_test_client *client, mk_str data);
/** Steps the server once, and waits at most `timeout_ms` for work. Returns 1; 0 if the connection is
 * closed; or an error as from mk_server_step(). */
MK_API int mk_test_client_step(struct mk_test_client *client, uint32_t timeout_ms);
/** All received bytes that mk_test_client_request() has not consumed; valid until the next call. */
MK_API mk_str mk_test_client_received(const struct mk_test_client *client);

/** Closes the connection, even if the server was already freed. NULL is allowed. */
MK_API void mk_test_client_close(struct mk_test_client *client);

#ifdef __cplusplus
}
#endif

#endif
