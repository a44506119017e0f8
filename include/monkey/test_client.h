/* SPDX-License-Identifier: Apache-2.0 */
/* A client in memory, for tests of programs with libmonkey. The archive libmonkey-test has it, which is libmonkey with this
 * client; neither libmonkey nor the program monkey does. */
#ifndef MONKEY_TEST_CLIENT_H
#define MONKEY_TEST_CLIENT_H

#include <monkey/server.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A connection to a server of this program that needs no socket, no port and no thread: what it asks goes
 * through the whole server, as HTTP/1.1 or HTTP/2 of a client at 127.0.0.1.
 *
 *     struct mk_test_client_answer answer;
 *     struct mk_test_client *client = mk_test_client_open(s);
 *     if (mk_test_client_request(client, "GET", "/hello", NULL, 0, MK_STR_NULL, &answer) == 0)
 *         check(answer.status, answer.content);
 *     mk_test_client_close(client);
 *
 * The server must be one that the program turns itself (mk_server_fd()) or that was not started yet; its
 * thread makes these calls, and no handler does. While a call waits, it turns the server.
 */
struct mk_test_client;

/** What the server answered; valid until the next call for this client. */
struct mk_test_client_answer {
    unsigned status;
    mk_str head;    /**< its fields, a line each: "Name: value\r\n" */
    mk_str content; /**< without its transfer coding */
};

/** Opens a connection, and starts the server if need be. NULL: mk_server_error(). */
MK_API struct mk_test_client *mk_test_client_open(struct mk_server *s) MK_API_MUST_USE;

/**
 * From now on mk_test_client_request() speaks HTTP/2, over a connection that begins with it (RFC 9113, section 3.3); a
 * connection that is open is closed. Field names of answers are then in lower case, as they are sent.
 * Fields of requests that HTTP/2 knows nothing of, such as Connection, are passed on as they are.
 *
 * 0; -EOPNOTSUPP: the library has no HTTP/2, or [SERVER] sets `HTTP2 off`; -EINVAL, -ESHUTDOWN and -EBUSY as
 * of mk_test_client_request().
 */
MK_API int mk_test_client_use_http2(struct mk_test_client *p);

/**
 * Asks, and waits for the whole answer. `fields` are n field lines; Host and, where there is content,
 * Content-Length are added, unless they are among them. If the server has closed the connection after the
 * last answer, this opens another one.
 *
 * 0; -EINVAL: the request cannot be written; -ETIMEDOUT: no answer came in 30 seconds; -ECONNRESET: the
 * server closed before its answer was complete; -EBADMSG: it is no response; -ESHUTDOWN: the server has
 * ended; -EBUSY: a call from the wrong place; -ENOMEM; -EINVAL, too: the client is NULL or, as debug builds of
 * the library notice, was closed.
 */
MK_API int mk_test_client_request(struct mk_test_client *p, const char *method, const char *target,
                                  const struct mk_header *fields, size_t n, mk_str content,
                                  struct mk_test_client_answer *answer);

/** The first field of that name, ignoring case; absent if there is none. */
MK_API mk_str mk_test_client_header(const struct mk_test_client_answer *answer, mk_str name);

/** For other than whole requests: bytes as a client sends them. They are read when the server is turned.
 * 0, -ENOMEM, -EINVAL, or -ECONNRESET: the connection is closed. */
MK_API int mk_test_client_send(struct mk_test_client *p, mk_str bytes);
/** Turns the server once, waiting at most `ms` for something to do. 1; 0: the connection is closed; or an
 * error, as of mk_server_step(). */
MK_API int mk_test_client_step(struct mk_test_client *p, uint32_t ms);
/** All bytes that came and that mk_test_client_request() has not used; valid until the next call. */
MK_API mk_str mk_test_client_received(const struct mk_test_client *p);

/** Closes the connection; also when the server was freed already. NULL is fine. */
MK_API void mk_test_client_close(struct mk_test_client *p);

#ifdef __cplusplus
}
#endif

#endif
