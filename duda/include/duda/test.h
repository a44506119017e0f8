/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of services, in C: `monkey test` compiles them, loads the service into an in-process server, and runs
 * them. */
#ifndef DUDA_TEST_H
#define DUDA_TEST_H

#include <monkey/api.h>
#include <monkey/str.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A running test. */
struct duda_test;

/** A response of the service. Strings live until the test ends. */
struct duda_test_response {
    unsigned status; /**< 0: no response */
    mk_str headers;  /**< headers, one per line: "Name: value\r\n"; NUL-terminated, like the body */
    mk_str body;
};

/** A request to the service. */
struct duda_test_request {
    const char *method;  /**< NULL: "GET", or "POST" if there is a body */
    const char *target;  /**< "/items?n=1" */
    const char *headers; /**< headers: "Accept: text/html\r\n", each line with its line ending; NULL: none */
    mk_str body;         /**< absent: none */
};

/**
 * Defines a test of handlers. `name` is a C identifier.
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

/** Sends a request over a new in-memory connection, without a socket, and waits for the response. The test
 * fails if the service does not respond. */
MK_API struct duda_test_response duda_test_send(struct duda_test *test,
                                                const struct duda_test_request *request);
/** Sends `GET target`. */
MK_API struct duda_test_response duda_test_get(struct duda_test *test, const char *target);
/** Sends `POST target` with a body of the media type `type`. */
MK_API struct duda_test_response duda_test_post(struct duda_test *test, const char *target, const char *type,
                                                const char *body);
/** The value of the first header with that name, ignoring case; absent if there is none. */
MK_API mk_str duda_test_response_header(const struct duda_test_response *response, const char *name);

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
/** Checks the status of a response; on failure the message shows the response. */
#define duda_expect_status(test, response, expected)                                                         \
    duda_test_expect_status(test, response, expected, __FILE__, __LINE__)
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

#ifdef __cplusplus
}
#endif

#endif
