/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "unit/site.h"
#include "unit/test.h"

static struct site site;

static struct handler_plan {
    unsigned flags, status;
    const char *etag, *modified, *coding;
    const char *body; /* NULL: a source */
    int result;
} plan;

static ssize_t read_nothing(void *ctx, char *buf, size_t cap)
{
    (void)ctx, (void)buf, (void)cap;
    return 0;
}

static const struct mk_body_source_ops source = {.read = read_nothing};

static void set_header(struct mk_response *response, const char *name, const char *value)
{
    if (value)
        assert_int_equal(mk_response_set_header(response, mk_str_from_c(name), mk_str_from_c(value)), 0);
}

static enum mk_verdict respond(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    set_header(response, "Content-Type", "text/x");
    set_header(response, "ETag", plan.etag);
    set_header(response, "Last-Modified", plan.modified);
    set_header(response, "Content-Encoding", plan.coding);
    assert_int_equal(mk_response_set_status(response, plan.status), 0);
    assert_int_equal(plan.body ? mk_response_set_body(response, mk_str_from_c(plan.body))
                               : mk_response_set_body_source(response, &source, NULL, 4),
                     0);
    plan.result = mk_response_make_conditional(request, response, plan.flags);
    return plan.result ? MK_ERROR : MK_DONE;
}

static void setup(void)
{
    static const struct mk_handler handler = {.name = "plan", .handle = respond};
    static const struct mk_route route = {.pattern = {.text = MK_STR_INIT("/*"), .kind = MK_PATTERN_ALL},
                                          .handler = &handler};
    site_setup(&site);
    site.host.routes = &route;
    site.host.n_routes = 1;
    plan = (struct handler_plan){.flags = MK_CONDITIONAL_RANGES, .etag = "\"a\"", .body = "0123456789"};
}

static struct mk_exchange *expect_status(const char *fields, unsigned status)
{
    struct mk_exchange *x = site_run_get(&site, "/x", fields);
    assert_int_equal(x->response.status, status);
    return x;
}

static void conditional_range_is_sent(void **state)
{
    (void)state;
    struct mk_exchange *x = expect_status("Range: bytes=2-4\r\n", 206);
    assert_str(site_content(x), "234");
    assert_str(site_field(x, "Content-Range"), "bytes 2-4/10");
    assert_str(site_field(x, "Accept-Ranges"), "bytes");
    mk_exchange_free(x);
}

static void conditional_without_flags_sends_the_whole_body(void **state)
{
    (void)state;
    plan.flags = 0;
    struct mk_exchange *x = expect_status("Range: bytes=2-4\r\n", 200);
    assert_str(site_content(x), "0123456789");
    assert_null(site_field(x, "Accept-Ranges").p);
    mk_exchange_free(x);
}

static void conditional_etag_depends_on_the_body(void **state)
{
    (void)state;
    char first[64];
    plan.etag = NULL;
    plan.flags = MK_CONDITIONAL_ETAG;
    struct mk_exchange *x = expect_status("", 200);
    snprintf(first, sizeof first, "If-None-Match: %.*s\r\n", MK_STR_ARG(site_field(x, "ETag")));
    mk_exchange_free(x);
    x = expect_status(first, 304);
    assert_null(site_field(x, "Content-Type").p);
    assert_int_equal(x->response.content.length, 0);
    mk_exchange_free(x);
    plan.body = "0123456788";
    mk_exchange_free(expect_status(first, 200));
}

static void conditional_invalid_etag_matches_nothing(void **state)
{
    (void)state;
    plan.etag = "a";
    mk_exchange_free(expect_status("If-None-Match: a\r\n", 200));
    mk_exchange_free(expect_status("If-Match: \"a\"\r\n", 412));
    mk_exchange_free(expect_status("Range: bytes=0-0\r\nIf-Range: a\r\n", 200));
}

static void conditional_date_is_compared(void **state)
{
    (void)state;
    plan.etag = NULL;
    plan.modified = "Sat, 01 Jan 2000 00:00:00 GMT";
    mk_exchange_free(expect_status("If-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT\r\n", 304));
    mk_exchange_free(expect_status("If-Unmodified-Since: Fri, 31 Dec 1999 00:00:00 GMT\r\n", 412));
    plan.modified = "yesterday";
    mk_exchange_free(expect_status("If-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT\r\n", 200));
}

static void conditional_changes_only_a_200(void **state)
{
    (void)state;
    plan.status = 201;
    plan.flags = MK_CONDITIONAL_ETAG | MK_CONDITIONAL_RANGES;
    plan.etag = NULL;
    struct mk_exchange *x = expect_status("Range: bytes=0-0\r\nIf-None-Match: *\r\n", 201);
    assert_null(site_field(x, "ETag").p);
    mk_exchange_free(x);
}

static void conditional_unsatisfiable_range_gets_416(void **state)
{
    (void)state;
    struct mk_exchange *x = expect_status("Range: bytes=10-\r\n", 416);
    assert_int_equal(plan.result, 416);
    assert_str(site_field(x, "Content-Range"), "bytes */10");
    assert_null(site_field(x, "ETag").p);
    mk_exchange_free(x);
}

static void conditional_source_has_preconditions_but_no_ranges(void **state)
{
    (void)state;
    plan.body = NULL;
    plan.flags = MK_CONDITIONAL_ETAG | MK_CONDITIONAL_RANGES;
    mk_exchange_free(expect_status("Range: bytes=0-0\r\n", 200));
    mk_exchange_free(expect_status("If-None-Match: \"a\"\r\n", 304));
}

static void conditional_compressed_body_has_no_multipart(void **state)
{
    (void)state;
    plan.coding = "x";
    mk_exchange_free(expect_status("Range: bytes=0-0, 3-4\r\n", 200));
    mk_exchange_free(expect_status("Range: bytes=0-0\r\n", 206));
}

static void conditional_sealed_response_is_unchanged(void **state)
{
    (void)state;
    struct mk_exchange *x = expect_status("", 200);
    x->response.sealed = true;
    assert_int_equal(mk_response_make_conditional(&x->request, &x->response, plan.flags), -EALREADY);
    mk_exchange_free(x);
}

static void conditional_request_preconditions_precede_the_work(void **state)
{
    (void)state;
    struct mk_exchange *x = expect_status("If-Match: \"a\"\r\n", 200);
    assert_int_equal(mk_request_check_preconditions(&x->request, MK_STR("\"a\""), 0), 0);
    assert_int_equal(mk_request_check_preconditions(&x->request, MK_STR("\"b\""), 0), 412);
    assert_int_equal(mk_request_check_preconditions(&x->request, MK_STR_NULL, 0), 412);
    mk_exchange_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(conditional_range_is_sent, setup),
        fixture_test(conditional_without_flags_sends_the_whole_body, setup),
        fixture_test(conditional_etag_depends_on_the_body, setup),
        fixture_test(conditional_invalid_etag_matches_nothing, setup),
        fixture_test(conditional_date_is_compared, setup),
        fixture_test(conditional_changes_only_a_200, setup),
        fixture_test(conditional_unsatisfiable_range_gets_416, setup),
        fixture_test(conditional_source_has_preconditions_but_no_ranges, setup),
        fixture_test(conditional_compressed_body_has_no_multipart, setup),
        fixture_test(conditional_sealed_response_is_unchanged, setup),
        fixture_test(conditional_request_preconditions_precede_the_work, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
