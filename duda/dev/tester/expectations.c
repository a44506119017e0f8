/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of duda/test.h. */
#include "failure_report.h"
#include "json_compare.h"
#include "test_type.h"

#include <stdio.h>
#include <string.h>

static void mark_test_failed(struct duda_test *t, const char *file, int line)
{
    t->failed = true;
    tester_report_location(file, line);
}

/* Shows the last response after a failure, if it is an error that the test does not expect and no failure has
 * shown: it is probably the cause. */
static void explain_failure(struct duda_test *t)
{
    const struct duda_test_response *last = &t->last;
    if (last->status < 400 || t->is_last_explained)
        return;
    printf("    after %.*s %.*s, which got %u", MK_STR_ARG(last->method), MK_STR_ARG(last->target),
           last->status);
    tester_report_response(last, t->is_last_error_page);
    t->is_last_explained = true;
}

bool duda_test_expect(struct duda_test *t, bool is_true, const char *expression, const char *file, int line)
{
    if (is_true)
        return true;
    mark_test_failed(t, file, line);
    printf("%s is not true\n", expression);
    explain_failure(t);
    return false;
}

bool duda_test_expect_text(struct duda_test *t, mk_str got, const char *expected, const char *expression,
                           const char *file, int line)
{
    if (got.p && mk_str_eq(got, mk_str_from_c(expected)))
        return true;
    mark_test_failed(t, file, line);
    tester_report_difference(expression, got, mk_str_from_c(expected));
    explain_failure(t);
    return false;
}

bool duda_test_expect_contains(struct duda_test *t, mk_str got, const char *part, const char *expression,
                               const char *file, int line)
{
    if (got.p && memmem(got.p, got.len, part, strlen(part)))
        return true;
    mark_test_failed(t, file, line);
    tester_report_missing_part(expression, got, mk_str_from_c(part));
    explain_failure(t);
    return false;
}

bool duda_test_expect_int(struct duda_test *t, long long got, long long expected, const char *expression,
                          const char *file, int line)
{
    if (got == expected)
        return true;
    mark_test_failed(t, file, line);
    printf("%s: expected %lld, got %lld\n", expression, expected, got);
    explain_failure(t);
    return false;
}

bool duda_test_expect_status(struct duda_test *t, struct duda_test_response reply, unsigned expected,
                             const char *file, int line)
{
    bool is_last = reply.target.p == t->last.target.p;
    t->is_last_explained = t->is_last_explained || is_last; /* shown here, or expected */
    if (reply.status == expected)
        return true;
    mark_test_failed(t, file, line);
    printf("expected status %u, got %u", expected, reply.status);
    tester_report_response(&reply, is_last && t->is_last_error_page);
    return false;
}

bool duda_test_expect_json(struct duda_test *t, mk_str got, const char *expected, const char *expression,
                           const char *file, int line)
{
    struct tester_json_difference difference;
    bool ok = tester_json_compare(got, mk_str_from_c(expected), &difference);
    if (!ok) {
        mark_test_failed(t, file, line);
        if (difference.problem)
            printf("%s: %s: ", expression, difference.problem);
        else
            printf("%s: %.*s: ", expression, MK_STR_ARG(mk_buf_str(&difference.path)));
        tester_report_json(difference.got, difference.expected);
        explain_failure(t);
    }
    mk_buf_free(&difference.path);
    return ok;
}

mk_str duda_test_json(struct duda_test *t, mk_str json, const char *pointer)
{
    return tester_json_find(t, json, mk_str_from_c(pointer));
}
