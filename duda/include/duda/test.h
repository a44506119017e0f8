/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of services, in C: `monkey test` compiles the tests, loads the service into an in-process server, and
 * runs the tests. */
#ifndef DUDA_TEST_H
#define DUDA_TEST_H

#include <monkey/api.h>
#include <monkey/str.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Lets the compiler check that the arguments end with NULL. */
#if defined(__GNUC__)
#define DUDA_TEST_SENTINEL __attribute__((sentinel))
#else
#define DUDA_TEST_SENTINEL
#endif

/** A running test. */
struct duda_test;

/** A response of the service. Strings are NUL-terminated and valid until the test ends. */
struct duda_test_response {
    unsigned status; /**< 0: no response */
    mk_str headers;  /**< one header per line: "Name: value\r\n" */
    mk_str body;
    mk_str method, target, request_headers, request_body; /**< the request, for duda_test_follow() */
    mk_str reason; /**< messages that the server and the service have logged about the request, one per line;
                        debug messages only if there are no others. A failed check prints them. */
};

/** A request to the service. */
struct duda_test_request {
    const char *method;  /**< NULL: "GET", or "POST" if there is a body */
    const char *target;  /**< "/items?n=1" */
    const char *headers; /**< headers: "Accept: text/html\r\n", each line with its line ending; NULL: none */
    mk_str body;         /**< absent: none */
};

/**
 * Defines a test, which sends requests to the routes of the service. `name` is a C identifier, and `t` is the
 * test. Each test runs in its own process, with a new instance of the service, an empty cookie jar and empty
 * databases (see duda_test_folder()).
 *
 *     #include <duda/test.h>
 *
 *     DUDA_TEST(greets)
 *     {
 *         struct duda_test_response response = duda_test_get(t, "/?name=you");
 *         duda_expect_status(t, response, 200);
 *         duda_expect_text(t, response.body, "hello you\n");
 *     }
 */
#define DUDA_TEST(name)                                                                                      \
    static void duda_test_of_##name(struct duda_test *test);                                                 \
    __attribute__((constructor)) static void duda_test_add_##name(void)                                      \
    {                                                                                                        \
        duda_test_add(#name, duda_test_of_##name);                                                           \
    }                                                                                                        \
    static void duda_test_of_##name(struct duda_test *t)

/** Registers a test; only DUDA_TEST() calls it. */
MK_API void duda_test_add(const char *name, void (*fn)(struct duda_test *t));

/**
 * Sends a request over a new in-memory connection, without a socket, and waits for the response. The test
 * fails if the service does not respond.
 *
 *     struct duda_test_request request = {.method = "PUT", .target = "/items/7", .body = MK_STR("{\"name\": \"tea\"}"),
 *                                         .headers = "Content-Type: application/json\r\nAuthorization: Bearer x\r\n"};
 *     duda_expect_status(t, duda_test_send(t, &request), 204);
 */
MK_API struct duda_test_response duda_test_send(struct duda_test *test,
                                                const struct duda_test_request *request);
/**
 * Sends `GET target`.
 *
 *     duda_expect_status(t, duda_test_get(t, "/items?page=2"), 200);
 */
MK_API struct duda_test_response duda_test_get(struct duda_test *test, const char *target);
/**
 * Sends `POST target` with a body of the media type `type`.
 *
 *     duda_expect_status(t, duda_test_post(t, "/items", "application/json", "{\"name\": \"tea\"}"), 201);
 */
MK_API struct duda_test_response duda_test_post(struct duda_test *test, const char *target, const char *type,
                                                const char *body);
/**
 * The value of the first header with that name, ignoring case; absent if there is none.
 *
 *     struct duda_test_response page = duda_test_get(t, "/");
 *     duda_expect_text(t, duda_test_response_header(page, "Content-Type"), "text/html; charset=utf-8");
 */
MK_API mk_str duda_test_response_header(struct duda_test_response response, const char *name);

/**
 * Sends a form with POST, as a browser does. The arguments are pairs of a name and a value, followed by NULL.
 *
 *     struct duda_test_response page = duda_test_get(t, "/login");
 *     duda_test_post_form(t, "/login", "name", "ada", "password", "secret", "csrf_token",
 *                         duda_test_csrf_token(t, page), NULL);
 */
MK_API struct duda_test_response duda_test_post_form(struct duda_test *test, const char *target,
                                                     ...) DUDA_TEST_SENTINEL;

/** A part of a multipart form: a field, or a file if `file_name` is set. */
struct duda_test_part {
    const char *name;
    const char *value;     /**< the content as a C string */
    mk_str content;        /**< the content in place of `value`, for binary data */
    const char *file_name; /**< NULL: not a file */
    const char *type;      /**< media type; NULL: none, or application/octet-stream for a file */
};
/**
 * Sends a multipart form with POST, such as an upload.
 *
 *     const struct duda_test_part parts[] = {
 *         {.name = "title", .value = "Roof"},
 *         {.name = "photo", .file_name = "roof.jpg", .type = "image/jpeg", .content = MK_STR("\377\330")},
 *     };
 *     duda_expect_status(t, duda_test_post_multipart(t, "/photos", parts, MK_LEN(parts)), 303);
 */
MK_API struct duda_test_response duda_test_post_multipart(struct duda_test *test, const char *target,
                                                          const struct duda_test_part *parts, size_t n);

/** Returns the CSRF token in the body of a response: the 64 hexadecimal digits in the tag, or in the line,
 * that contains "csrf". Send it in the field `csrf_token` or in the header `X-CSRF-Token`. The test fails if
 * there is no token. */
MK_API const char *duda_test_csrf_token(struct duda_test *test, struct duda_test_response response);

/**
 * Follows redirects until a response is not a redirect, and returns that response. 307 and 308 repeat the
 * request; all others are followed with GET. The test fails if `response` is not a redirect, or if a redirect
 * leads to another host.
 *
 *     struct duda_test_response page = duda_test_follow(t, duda_test_post_form(t, "/items", "name", "tea", NULL));
 *     duda_expect_contains(t, page.body, "tea");
 */
MK_API struct duda_test_response duda_test_follow(struct duda_test *test, struct duda_test_response response);

/** Returns the value of a cookie in the jar; absent if there is none. Requests send the cookies that
 * responses have set, subject to path and expiry. A request with its own header Cookie sends only that. */
MK_API mk_str duda_test_cookie(struct duda_test *test, const char *name);
/**
 * Sets a cookie for all paths. A value of NULL removes the cookie.
 *
 *     duda_test_set_cookie(t, "theme", "dark");
 *     duda_expect_contains(t, duda_test_get(t, "/").body, "class=dark");
 *     duda_expect_text(t, duda_test_cookie(t, "theme"), "dark");
 */
MK_API void duda_test_set_cookie(struct duda_test *test, const char *name, const char *value);
/**
 * Removes all cookies, so that the next request comes from a new browser.
 *
 *     duda_test_clear_cookies(t); // another browser
 *     duda_expect_status(t, duda_test_get(t, "/account"), 401);
 */
MK_API void duda_test_clear_cookies(struct duda_test *test);

/**
 * Returns the value to which a JSON pointer (RFC 6901), such as "/items/0/name", refers: the content of a
 * string, or the JSON text of any other value; absent if there is none.
 *
 *     struct duda_test_response list = duda_test_get(t, "/items");
 *     duda_expect_text(t, duda_test_json(t, list.body, "/items/0/name"), "tea");
 */
MK_API mk_str duda_test_json(struct duda_test *test, mk_str json, const char *pointer);

/* ---- Streams ---- */

/** A response whose body the test reads as it arrives. It is closed when the test ends. */
struct duda_test_stream;

/** A server-sent event. Strings that the service has not sent are absent. */
struct duda_test_event {
    mk_str name; /**< "message" by default */
    mk_str id, data;
};

/**
 * Sends a request, and returns once the headers of the response have arrived.
 *
 *     struct duda_test_event event;
 *     struct duda_test_request request = {.target = "/news"};
 *     struct duda_test_stream *news = duda_test_stream_open(t, &request);
 *     duda_test_post(t, "/publish", "text/plain", "tea");
 *     duda_expect(t, duda_test_stream_event(news, 1000, &event));
 *     duda_expect_text(t, event.data, "tea");
 */
MK_API struct duda_test_stream *duda_test_stream_open(struct duda_test *test,
                                                      const struct duda_test_request *request);
/** Status and headers of the response. */
MK_API struct duda_test_response duda_test_stream_response(const struct duda_test_stream *stream);
/**
 * Waits up to `timeout_ms` for more of the body. Returns false on timeout or at the end of the body.
 *
 *     mk_str part;
 *     while (duda_test_stream_read(stream, 1000, &part))
 *         n += part.len;
 *     duda_expect_int(t, n, 100000);
 */
MK_API bool duda_test_stream_read(struct duda_test_stream *stream, uint32_t timeout_ms,
                                  mk_str *data) MK_API_MUST_USE;
/** Waits up to `timeout_ms` for the next event, and skips comments. Returns false on timeout or at the
 * end of the body. */
MK_API bool duda_test_stream_event(struct duda_test_stream *stream, uint32_t timeout_ms,
                                   struct duda_test_event *event) MK_API_MUST_USE;
/** Waits up to `timeout_ms` for the service to end the response. Returns whether it has ended. */
MK_API bool duda_test_stream_ended(struct duda_test_stream *stream, uint32_t timeout_ms) MK_API_MUST_USE;
/**
 * Disconnects before the end of the response, as a browser does when its tab is closed.
 *
 *     duda_test_stream_close(stream);
 *     duda_expect_text(t, duda_test_get(t, "/listeners").body, "0\n");
 */
MK_API void duda_test_stream_close(struct duda_test_stream *stream);

/* ---- WebSockets ---- */

/** A WebSocket client. It disconnects when the test ends. */
struct duda_test_websocket;

/** The kind of a message. */
enum duda_test_message_kind { DUDA_TEST_TEXT = 1, DUDA_TEST_BINARY, DUDA_TEST_CLOSE };

/** A message from the service. DUDA_TEST_CLOSE: the service has closed the WebSocket. */
struct duda_test_message {
    enum duda_test_message_kind kind;
    mk_str data;         /**< the message; for DUDA_TEST_CLOSE, the reason */
    unsigned close_code; /**< for DUDA_TEST_CLOSE; 1005: the service has sent none */
};

/** Opens a WebSocket. Only `target` and `headers` of the request are used. If the service rejects the
 * request, the status of the response is not 101, and no messages can be sent or received. */
MK_API struct duda_test_websocket *duda_test_websocket_open(struct duda_test *test,
                                                            const struct duda_test_request *request);
/** Status and headers of the response to the request. */
MK_API struct duda_test_response duda_test_websocket_response(const struct duda_test_websocket *websocket);
/** Sends a text or binary message. Returns false if the connection is closed. */
MK_API bool duda_test_websocket_send(struct duda_test_websocket *websocket, const char *text);
MK_API bool duda_test_websocket_send_binary(struct duda_test_websocket *websocket, mk_str data);
/**
 * Waits up to `timeout_ms` for a message. Returns false on timeout.
 *
 *     struct duda_test_message message;
 *     struct duda_test_request request = {.target = "/echo"};
 *     struct duda_test_websocket *echo = duda_test_websocket_open(t, &request);
 *     duda_expect(t, duda_test_websocket_send(echo, "hello"));
 *     duda_expect(t, duda_test_websocket_receive(echo, 1000, &message));
 *     duda_expect_text(t, message.data, "hello");
 *     duda_test_websocket_close(echo, 1000);
 */
MK_API bool duda_test_websocket_receive(struct duda_test_websocket *websocket, uint32_t timeout_ms,
                                        struct duda_test_message *message) MK_API_MUST_USE;
/** Closes the WebSocket with this close code (1000: normal closure). */
MK_API void duda_test_websocket_close(struct duda_test_websocket *websocket, unsigned code);

/* ---- Time, data and other servers ---- */

/**
 * Simulates the passage of time: advances all clocks of the process, and runs the timers that are due. Expiry
 * times, rate limits, sessions and job schedules follow the clocks.
 *
 *     duda_test_advance_clock(t, 3600 * 1000);
 *     duda_expect_status(t, duda_test_get(t, "/profile"), 401); // the session has expired
 */
MK_API void duda_test_advance_clock(struct duda_test *test, uint64_t duration_ms);
/**
 * Sets the wall clock of the process, in seconds since 1970. Timeouts are not affected.
 *
 *     duda_test_set_time(t, 1767225600); // 2026-01-01 00:00 UTC
 *     duda_expect_contains(t, duda_test_get(t, "/").body, "Happy New Year");
 */
MK_API void duda_test_set_time(struct duda_test *test, int64_t unix_s);
/** Runs the service for `duration_ms` of real time, so that background tasks and threads can make
 * progress. */
MK_API void duda_test_wait(struct duda_test *test, uint32_t duration_ms);

/**
 * Runs the service until all start tasks have succeeded and all tasks of duda_after_response() have ended,
 * for at most `timeout_ms` of real time. Returns false on timeout. A start task that has failed runs again
 * after a second; duda_test_advance_clock() skips this delay.
 *
 *     duda_test_post_form(t, "/sign-up", "email", "ana@example.org", NULL);
 *     duda_expect(t, duda_test_wait_for_tasks(t, 1000)); // the mail is sent
 */
MK_API bool duda_test_wait_for_tasks(struct duda_test *test, uint32_t timeout_ms) MK_API_MUST_USE;

/** Returns the path of a folder for the files of this test, which is deleted when the test ends. During a
 * test, packages store their data in this folder instead of the configured one, so each test begins with an
 * empty SQLite database and an empty key-value store; PostgreSQL gets an empty schema. Migrations run as
 * usual. */
MK_API const char *duda_test_folder(void);

/** A fake HTTP server, to which an [HTTP_CLIENT] section sends its requests. */
struct duda_test_backend;

/** A request that the service has sent to a fake server. Strings are valid until the test ends. */
struct duda_test_backend_request {
    mk_str method; /**< absent: there is no such request */
    mk_str target, headers, body;
};

/**
 * Starts a fake server in place of the one of the [HTTP_CLIENT] section with this Name. Call this function
 * before the first request of the test.
 *
 *     struct duda_test_backend *rates = duda_test_backend_start(t, "rates");
 *     duda_test_backend_respond(rates, "GET /rates", 200, "application/json", "{\"EUR\": 1}");
 *     duda_expect_text(t, duda_test_get(t, "/price").body, "1 EUR\n");
 *     duda_expect_int(t, duda_test_backend_count(rates), 1);
 */
MK_API struct duda_test_backend *duda_test_backend_start(struct duda_test *test, const char *name);
/** Sets the response to a method and a target. A target without a query matches any query; a target that ends
 * in `*` matches any suffix. If several responses match, the one set last is sent. If none matches, the fake
 * server responds with 501, and the test fails. */
MK_API void duda_test_backend_respond(struct duda_test_backend *backend, const char *route, unsigned status,
                                      const char *type, const char *body);
/** Returns the number of requests so far. */
MK_API size_t duda_test_backend_count(struct duda_test_backend *backend);
/**
 * Returns the i-th request, counted from 0.
 *
 *     struct duda_test_backend_request first = duda_test_backend_received(orders, 0);
 *     duda_expect_text(t, first.method, "POST");
 *     duda_expect_json(t, first.body, "{\"item\": \"tea\"}");
 */
MK_API struct duda_test_backend_request duda_test_backend_received(struct duda_test_backend *backend,
                                                                   size_t i);

/* ---- Checks ---- */

/** Checks that the expression is true; if not, the test fails but continues. Returns the result. */
#define duda_expect(test, expression) duda_test_expect(test, expression, #expression, __FILE__, __LINE__)
/** Checks that two strings are equal; on failure the message shows the first difference. */
#define duda_expect_text(test, got, expected)                                                                \
    duda_test_expect_text(test, got, expected, #got, __FILE__, __LINE__)
/** Checks that a string contains another. */
#define duda_expect_contains(test, got, substring)                                                           \
    duda_test_expect_contains(test, got, substring, #got, __FILE__, __LINE__)
/** Checks that two integers are equal. */
#define duda_expect_int(test, got, expected)                                                                 \
    duda_test_expect_int(test, got, expected, #got, __FILE__, __LINE__)
/** Checks the status of a response; on failure the message shows the beginning of the body, the target of a
 * redirect, and the reason of the response. If the status is 400 or above and was not checked, the messages
 * of other failed checks contain them, too. */
#define duda_expect_status(test, response, expected)                                                         \
    duda_test_expect_status(test, response, expected, __FILE__, __LINE__)
/** Checks that a string is JSON with the same value as the expected JSON, regardless of the order of members
 * and of whitespace. On failure the message shows the path and the two values:
 * `$.items[1].name: expected "tea", got nothing`. */
#define duda_expect_json(test, got, expected)                                                                \
    duda_test_expect_json(test, got, expected, #got, __FILE__, __LINE__)
/** Implementation of these macros. */
MK_API bool duda_test_expect(struct duda_test *test, bool is_true, const char *expression, const char *file,
                             int line);
MK_API bool duda_test_expect_text(struct duda_test *test, mk_str got, const char *expected,
                                  const char *expression, const char *file, int line);
MK_API bool duda_test_expect_contains(struct duda_test *test, mk_str got, const char *substring,
                                      const char *expression, const char *file, int line);
MK_API bool duda_test_expect_int(struct duda_test *test, long long got, long long expected,
                                 const char *expression, const char *file, int line);
MK_API bool duda_test_expect_status(struct duda_test *test, struct duda_test_response response,
                                    unsigned expected, const char *file, int line);
MK_API bool duda_test_expect_json(struct duda_test *test, mk_str got, const char *expected,
                                  const char *expression, const char *file, int line);

#ifdef __cplusplus
}
#endif

#endif
