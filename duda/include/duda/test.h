/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of services, in C: `monkey test` compiles them, loads the service into a server in memory, and runs
 * them. */
#ifndef DUDA_TEST_H
#define DUDA_TEST_H

#include <monkey/api.h>
#include <monkey/str.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One test under way. */
struct duda_test;

/** What the service answered. Texts live until the test ends. */
struct duda_test_response {
    unsigned status; /**< 0: it did not answer */
    mk_str head;     /**< its fields, a line each: "Name: value\r\n"; a NUL follows it, and the body */
    mk_str body;
};

/** What a test asks for. */
struct duda_test_request {
    const char *method; /**< NULL: "GET", or "POST" if there is a body */
    const char *target; /**< "/items?n=1" */
    const char *fields; /**< "Accept: text/html\r\n", each line with its end; NULL: none */
    mk_str body;        /**< absent: none */
};

/**
 * Defines a test. `name` is a word of C.
 *
 *     #include <duda/test.h>
 *
 *     DUDA_TEST(greets)
 *     {
 *         struct duda_test_response reply = duda_test_get(t, "/?name=you");
 *         duda_expect_status(t, reply, 200);
 *         duda_expect_text(t, reply.body, "hello you\n");
 *     }
 */
#define DUDA_TEST(name)                                                                                      \
    static void duda_test_of_##name(struct duda_test *t);                                                    \
    __attribute__((constructor)) static void duda_test_add_##name(void)                                      \
    {                                                                                                        \
        duda_test_add(#name, duda_test_of_##name);                                                           \
    }                                                                                                        \
    static void duda_test_of_##name(struct duda_test *t)

/** What DUDA_TEST() calls; nothing else does. */
MK_API void duda_test_add(const char *name, void (*fn)(struct duda_test *t));

/** Sends a request over a connection of its own, which needs no socket, and waits for the response. A service
 * that does not answer fails the test. */
MK_API struct duda_test_response duda_test_send(struct duda_test *t, const struct duda_test_request *ask);
/** The same for `GET target`. */
MK_API struct duda_test_response duda_test_get(struct duda_test *t, const char *target);
/** The same for `POST target` with content of that type. */
MK_API struct duda_test_response duda_test_post(struct duda_test *t, const char *target, const char *type,
                                                const char *body);
/** The value of the first field of that name, ignoring case; absent if there is none. */
MK_API mk_str duda_test_response_header(const struct duda_test_response *reply, const char *name);

/** The test fails, and goes on, unless the expression is true. Answers whether it is. */
#define duda_expect(t, expression) duda_test_expect(t, expression, #expression, __FILE__, __LINE__)
/** The same for a text that is to be equal to another one; the message shows where they differ. */
#define duda_expect_text(t, got, wanted) duda_test_expect_text(t, got, wanted, #got, __FILE__, __LINE__)
/** The same for a text that is to hold another one. */
#define duda_expect_contains(t, got, part) duda_test_expect_contains(t, got, part, #got, __FILE__, __LINE__)
/** The same for numbers that are to be equal. */
#define duda_expect_int(t, got, wanted) duda_test_expect_int(t, got, wanted, #got, __FILE__, __LINE__)
/** The same for the status of a reply; the message shows what came with another one. */
#define duda_expect_status(t, reply, wanted) duda_test_expect_status(t, reply, wanted, __FILE__, __LINE__)
/** What these call. */
MK_API bool duda_test_expect(struct duda_test *t, bool is_true, const char *what, const char *file, int line);
MK_API bool duda_test_expect_text(struct duda_test *t, mk_str got, const char *wanted, const char *what,
                                  const char *file, int line);
MK_API bool duda_test_expect_contains(struct duda_test *t, mk_str got, const char *part, const char *what,
                                      const char *file, int line);
MK_API bool duda_test_expect_int(struct duda_test *t, long long got, long long wanted, const char *what,
                                 const char *file, int line);
MK_API bool duda_test_expect_status(struct duda_test *t, struct duda_test_response reply, unsigned wanted,
                                    const char *file, int line);

#ifdef __cplusplus
}
#endif

#endif
