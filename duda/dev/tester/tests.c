/* SPDX-License-Identifier: Apache-2.0 */
#include "tests.h"

#include "failure_report.h"
#include "progress.h"

#include <duda/test.h>
#include <errno.h>
#include <monkey/buf.h>
#include <stdio.h>
#include <string.h>

enum { TESTS_MAX = 1024, REPLIES_MAX = 1024, REPLY_MAX = 256 * 1024 * 1024, FIELDS_MAX = 64 };

struct duda_test {
    const char *name;
    struct mk_server *server;
    bool failed;
    struct mk_buf replies[REPLIES_MAX]; /* the strings of responses, until the end of the test */
    size_t n;
};

static struct {
    const char *name;
    void (*fn)(struct duda_test *t);
} tests[TESTS_MAX];
static size_t n_tests;

void duda_test_add(const char *name, void (*fn)(struct duda_test *t))
{
    if (n_tests == TESTS_MAX)
        return;
    tests[n_tests].name = name;
    tests[n_tests++].fn = fn;
}

size_t tester_tests_count(void)
{
    return n_tests;
}

/* ---- Expectations ---- */

static bool mark_test_failed(struct duda_test *t, const char *file, int line)
{
    t->failed = true;
    tester_report_location(file, line);
    return false;
}

bool duda_test_expect(struct duda_test *t, bool is_true, const char *expression, const char *file, int line)
{
    if (is_true)
        return true;
    mark_test_failed(t, file, line);
    printf("%s is not true\n", expression);
    return false;
}

bool duda_test_expect_text(struct duda_test *t, mk_str got, const char *expected, const char *expression,
                           const char *file, int line)
{
    if (got.p && mk_str_eq(got, mk_str_from_c(expected)))
        return true;
    mark_test_failed(t, file, line);
    tester_report_difference(expression, got, mk_str_from_c(expected));
    return false;
}

bool duda_test_expect_contains(struct duda_test *t, mk_str got, const char *part, const char *expression,
                               const char *file, int line)
{
    if (got.p && memmem(got.p, got.len, part, strlen(part)))
        return true;
    mark_test_failed(t, file, line);
    tester_report_missing_part(expression, got, mk_str_from_c(part));
    return false;
}

bool duda_test_expect_int(struct duda_test *t, long long got, long long expected, const char *expression,
                          const char *file, int line)
{
    if (got == expected)
        return true;
    mark_test_failed(t, file, line);
    printf("%s: expected %lld, got %lld\n", expression, expected, got);
    return false;
}

bool duda_test_expect_status(struct duda_test *t, struct duda_test_response reply, unsigned expected,
                             const char *file, int line)
{
    if (reply.status == expected)
        return true;
    mark_test_failed(t, file, line);
    printf("expected status %u, got %u", expected, reply.status);
    tester_report_body(reply.body);
    return false;
}

/* ---- Requests ---- */

/* Parses "Name: value\r\n...". Returns false for a malformed line or too many headers. */
static bool parse_headers(const char *text, struct mk_header *fields, size_t *n)
{
    mk_str rest = mk_str_from_c(text);
    while (rest.len) {
        mk_str value = mk_str_cut(&rest, '\n');
        if (mk_str_ends(value, MK_STR("\r")))
            value = mk_str_first(value, value.len - 1);
        mk_str name = mk_str_first(value, mk_str_find(value, ':'));
        if (*n == FIELDS_MAX || name.len == value.len)
            return false;
        fields[(*n)++] = (struct mk_header){name, mk_str_trim(mk_str_skip(value, name.len + 1))};
    }
    return true;
}

static const char *request_error_text(int e)
{
    switch (e) {
    case -EINVAL:
        return "the request is invalid";
    case -ETIMEDOUT:
        return "no response within 30 seconds";
    case -ECONNRESET:
        return "the server closed the connection before its response was complete";
    case -EBADMSG:
        return "the response is malformed";
    default:
        return strerror(-e);
    }
}

/* Copies the strings of the response, which must outlive the next request, into the test. */
static void store_response(struct mk_buf *buf, const struct mk_test_client_response *response,
                           struct duda_test_response *reply)
{
    *buf = mk_buf_growing(REPLY_MAX);
    mk_buf_add(buf, response->headers);
    mk_buf_add_char(buf, '\0');
    mk_buf_add(buf, response->body);
    mk_buf_add_char(buf, '\0');
    if (buf->failed)
        return;
    *reply = (struct duda_test_response){
        .status = response->status,
        .headers = mk_str_first(mk_buf_str(buf), response->headers.len),
        .body = mk_str_of(buf->p + response->headers.len + 1, response->body.len)};
}

static int send_request(struct duda_test *t, const struct duda_test_request *request, const char *method,
                        struct duda_test_response *reply)
{
    struct mk_header fields[FIELDS_MAX];
    struct mk_test_client_response response;
    size_t n = 0;
    if (t->n == REPLIES_MAX)
        return -ENOSPC;
    if (!parse_headers(request->headers, fields, &n))
        return -EINVAL;
    struct mk_test_client *client = mk_test_client_open(t->server);
    int e = client
                ? mk_test_client_request(client, method, request->target, fields, n, request->body, &response)
                : -ESHUTDOWN;
    if (!e)
        store_response(&t->replies[t->n++], &response, reply);
    mk_test_client_close(client);
    return e;
}

struct duda_test_response duda_test_send(struct duda_test *t, const struct duda_test_request *request)
{
    struct duda_test_response reply = {.headers = MK_STR(""), .body = MK_STR("")};
    const char *method = request->method ? request->method : request->body.p ? "POST" : "GET";
    int e = send_request(t, request, method, &reply);
    if (!e)
        return reply;
    t->failed = true;
    printf("  %s %s: %s\n", method, request->target, request_error_text(e));
    return reply;
}

struct duda_test_response duda_test_get(struct duda_test *t, const char *target)
{
    return duda_test_send(t, &(struct duda_test_request){.target = target});
}

struct duda_test_response duda_test_post(struct duda_test *t, const char *target, const char *type,
                                         const char *body)
{
    char fields[300];
    snprintf(fields, sizeof fields, "Content-Type: %.250s\r\n", type);
    return duda_test_send(
        t, &(struct duda_test_request){.target = target, .headers = fields, .body = mk_str_from_c(body)});
}

mk_str duda_test_response_header(const struct duda_test_response *reply, const char *name)
{
    const struct mk_test_client_response response = {.headers = reply->headers};
    return mk_test_client_header(&response, mk_str_from_c(name));
}

/* ---- Running tests ---- */

static bool run_one_test(struct duda_test *t, size_t i, struct mk_server *s)
{
    *t = (struct duda_test){.name = tests[i].name, .server = s};
    tests[i].fn(t);
    for (size_t k = 0; k < t->n; k++)
        mk_buf_free(&t->replies[k]);
    return !t->failed;
}

size_t tester_tests_run(struct mk_server *s, size_t first, const char *prefix)
{
    static struct duda_test test;
    size_t failed = 0;
    for (size_t i = first; i < n_tests; i++) {
        fprintf(stderr, DEV_TEST_PROGRESS_BEGIN "%zu %s\n", i, tests[i].name);
        bool ok = run_one_test(&test, i, s);
        printf("%s %s.%s\n", ok ? "ok" : "not ok", prefix, tests[i].name);
        fflush(stdout);
        fprintf(stderr, DEV_TEST_PROGRESS_END "%s\n", ok ? "ok" : "not ok");
        failed += !ok;
    }
    return failed;
}
