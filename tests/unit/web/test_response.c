/* SPDX-License-Identifier: Apache-2.0 */
#include "web/response.h"

#include <stdio.h>

#include "unit/child.h"
#include "unit/web/response_case.h"
#include "web/request_type.h"

static void response_status_defaults_to_200(void **state)
{
    (void)state;
    assert_int_equal(mk_response_status(&r), 200);
    assert_int_equal(r.status, 0);
    assert_int_equal(mk_response_set_status(&r, 404), 0);
    assert_int_equal(mk_response_status(&r), 404);
    static const unsigned bad[] = {1, 99, 100, 101, 199, 600, 1000, UINT32_MAX};
    for (size_t i = 0; i < MK_LEN(bad); i++)
        assert_int_equal(mk_response_set_status(&r, bad[i]), -EINVAL);
    assert_int_equal(mk_response_status(&r), 404);
    assert_int_equal(mk_response_set_status(&r, 200), 0);
    assert_int_equal(mk_response_set_status(&r, 599), 0);
    assert_int_equal(mk_response_status(&r), 599);
    assert_true(mk_response_has_status(&r));
    assert_int_equal(mk_response_set_status(&r, 0), 0);
    assert_false(mk_response_has_status(&r));
    assert_int_equal(mk_response_status(&r), 200);
}

static void response_headers_are_copied(void **state)
{
    (void)state;
    char name[] = "X-Name", value[] = "value";
    assert_int_equal(add(name, value), 0);
    memset(name, '?', sizeof name - 1);
    memset(value, '?', sizeof value - 1);
    assert_str(mk_response_header(&r, MK_STR("x-name")), "value");
    assert_int_equal(add("X-Empty", ""), 0);
    assert_int_equal(mk_response_header(&r, MK_STR("X-Empty")).len, 0);
    assert_non_null(mk_response_header(&r, MK_STR("X-Empty")).p);
    assert_null(mk_response_header(&r, MK_STR("X-Nam")).p);
}

static void response_rejects_header_injection(void **state)
{
    (void)state;
    static const char *const names[] = {"",    " ",   "a b", "a:",  "a\r\nb",   "a\n", "\r\nX: y", "a\t",
                                        "(a)", "a\"", "a,b", "a/b", "\xc3\xa4", "a;b", "a=b",      "[a]"};
    static const char *const values[] = {
        "a\r\nSet-Cookie: x", "a\nb", "a\rb", "\n", "a\x01", "a\x7f", "\x1b[2J", "a\x0b", "a\x0c"};
    for (size_t i = 0; i < MK_LEN(names); i++)
        if (add(names[i], "x") != -EINVAL)
            fail_msg("the name \"%s\" is accepted", names[i]);
    for (size_t i = 0; i < MK_LEN(values); i++)
        if (add("X-Name", values[i]) != -EINVAL)
            fail_msg("the value \"%s\" is accepted", values[i]);
    assert_int_equal(mk_response_add_header(&r, MK_STR("X\0Y"), MK_STR("x")), -EINVAL);
    assert_int_equal(mk_response_add_header(&r, MK_STR("X"), MK_STR("x\0y")), -EINVAL);
    assert_int_equal(mk_response_add_header(&r, MK_STR_NULL, MK_STR("x")), -EINVAL);
    assert_int_equal(r.n_fields, 0);
    assert_int_equal(add("X-Fine", "tab\tand \xc3\xa4, \"quotes\"; all = fine"), 0);
    assert_int_equal(r.n_fields, 1);
}

static void response_rejects_framing_headers(void **state)
{
    (void)state;
    static const char *const ours[] = {"Content-Length",    "Transfer-Encoding", "Connection",
                                       "Keep-Alive",        "Upgrade",           "content-length",
                                       "TRANSFER-ENCODING", "cOnNeCtIoN"};
    for (size_t i = 0; i < MK_LEN(ours); i++)
        if (add(ours[i], "1") != -EINVAL)
            fail_msg("%s is accepted", ours[i]);
    assert_int_equal(r.n_fields, 0);
    assert_int_equal(add("Content-Lengths", "1"), 0);
}

static void response_date_and_server_of_origin_are_kept(void **state)
{
    (void)state;
    assert_int_equal(add("Date", "Sun, 06 Nov 1994 08:49:37 GMT"), 0);
    assert_int_equal(r.own, MK_RESPONSE_OWN_DATE);
    assert_int_equal(add("date", "Sun, 06 Nov 1994 08:49:38 GMT"), 0);
    assert_int_equal(add("X", "1"), 0);
    assert_int_equal(add("SERVER", "origin"), 0);
    assert_int_equal(r.own, MK_RESPONSE_OWN_DATE | MK_RESPONSE_OWN_SERVER);
    assert_int_equal(r.n_fields, 3);
    assert_str(mk_response_header(&r, MK_STR("Date")), "Sun, 06 Nov 1994 08:49:38 GMT");
    assert_int_equal(mk_response_set_header(&r, MK_STR("Server"), MK_STR("other")), 0);
    assert_int_equal(r.n_fields, 3);
    assert_str(mk_response_header(&r, MK_STR("Server")), "other");
    assert_int_equal(mk_response_remove_header(&r, MK_STR("Date")), 0);
    assert_int_equal(r.own, MK_RESPONSE_OWN_SERVER); /* the server adds its own Date again */
    assert_int_equal(mk_response_set_header(&r, MK_STR("Date"), MK_STR("now")), 0);
    assert_int_equal(r.own, MK_RESPONSE_OWN_DATE | MK_RESPONSE_OWN_SERVER);
    mk_response_reset(&r);
    assert_int_equal(r.own, 0);
    assert_int_equal(mk_response_add_header_nocopy(&r, MK_STR("date"), MK_STR("never")), 0);
    assert_int_equal(r.own, MK_RESPONSE_OWN_DATE);
    r.sealed = true;
    assert_int_equal(add("Date", "x"), -EALREADY);
}

/* clang-format off */
#define LINE(name, value) {MK_STR_INIT(name), MK_STR_INIT(value)}
/* clang-format on */
#define TEXT "A: b\r\nServer: origin\r\n"

static void response_header_lines_become_a_block(void **state)
{
    static const struct mk_header lines[] = {LINE("A", "b"), LINE("Server", "origin")};
    mk_str name, value;
    (void)state;
    assert_int_equal(add("X", "1"), 0);
    assert_int_equal(mk_response_add_headers(&r, MK_STR(TEXT), lines, 2), 0);
    assert_int_equal(r.n_blocks, 1);
    assert_str(r.blocks[0]->text, TEXT);
    assert_int_equal(r.own, MK_RESPONSE_OWN_SERVER);
    assert_str(mk_response_header(&r, MK_STR("a")), "b");
    assert_true(mk_response_header_at(&r, 1, &name, &value));
    assert_str(value, "origin");
    /* the headers are added one by one */
    assert_int_equal(mk_response_add_headers(&r, MK_STR("A: b\r\n"), lines, 1), 0);
    assert_int_equal(r.n_blocks, 1);
    assert_int_equal(r.n_fields, 2);
    assert_int_equal(mk_response_remove_header(&r, MK_STR("A")), 0);
    assert_null(mk_response_header(&r, MK_STR("A")).p);
    assert_str(mk_response_header(&r, MK_STR("server")), "origin");
    mk_response_reset(&r);
    assert_int_equal(mk_response_add_headers(&r, MK_STR(""), NULL, 0), 0);
    r.sealed = true;
    assert_int_equal(mk_response_add_headers(&r, MK_STR(TEXT), lines, 2), -EALREADY);
}

static void response_last_server_header_is_kept(void **state)
{
    static const struct mk_header lines[] = {LINE("Server", "a"), LINE("B", "c"), LINE("server", "d")};
    (void)state;
    assert_int_equal(mk_response_add_headers(&r, MK_STR("Server: a\r\nB: c\r\nserver: d\r\n"), lines, 3), 0);
    assert_int_equal(r.n_blocks, 0);
    assert_int_equal(r.n_fields, 2);
    assert_str(mk_response_header(&r, MK_STR("Server")), "d");
    mk_response_reset(&r);
    assert_int_equal(add("Server", "ours"), 0);
    assert_int_equal(mk_response_add_headers(&r, MK_STR("Server: a\r\n"), lines, 1), 0);
    assert_int_equal(r.n_fields, 1);
    assert_str(mk_response_header(&r, MK_STR("Server")), "a");
}

static unsigned n_interim, last_interim;

static mk_err on_interim(void *ctx, unsigned status, const struct mk_header *fields, size_t n)
{
    assert_ptr_equal(ctx, &r);
    assert_true(n == 0 || fields);
    n_interim++;
    last_interim = status;
    return 0;
}

static void response_interim_is_validated(void **state)
{
    (void)state;
    static const struct mk_request_ops ops = {.interim = on_interim}, none = {0};
    static const struct mk_header fine = {MK_STR_INIT("Link"), MK_STR_INIT("<a>")},
                                  bad[] = {{MK_STR_INIT("Link"), MK_STR_INIT("a\r\nb: c")},
                                           {MK_STR_INIT("a b"), MK_STR_INIT("c")},
                                           {MK_STR_INIT("Content-Length"), MK_STR_INIT("5")},
                                           {MK_STR_INIT("Connection"), MK_STR_INIT("close")}};
    static const unsigned statuses[] = {0, 100, 101, 200, 204, UINT32_MAX};
    struct mk_request request = {.version = 11, .ops = &ops, .ops_ctx = &r};
    for (size_t i = 0; i < MK_LEN(statuses); i++)
        assert_int_equal(mk_response_send_1xx(&request, &r, statuses[i], &fine, 1), -EINVAL);
    for (size_t i = 0; i < MK_LEN(bad); i++)
        assert_int_equal(mk_response_send_1xx(&request, &r, 103, &bad[i], 1), -EINVAL);
    assert_int_equal(n_interim, 0);
    assert_int_equal(mk_response_send_1xx(&request, &r, 103, &fine, 1), 0);
    assert_int_equal(mk_response_send_1xx(&request, &r, 102, NULL, 0), 0);
    request.version = 20;
    assert_int_equal(mk_response_send_1xx(&request, &r, 199, &fine, 1), 0);
    assert_int_equal(n_interim, 3);
    assert_int_equal(last_interim, 199);
    request.version = 10;
    assert_int_equal(mk_response_send_1xx(&request, &r, 103, &fine, 1), -EOPNOTSUPP);
    request = (struct mk_request){.version = 11, .ops = &none};
    assert_int_equal(mk_response_send_1xx(&request, &r, 103, &fine, 1), -EOPNOTSUPP);
    r.sealed = true;
    assert_int_equal(mk_response_send_1xx(&request, &r, 103, NULL, 0), -EALREADY);
    assert_int_equal(r.n_fields, 0);
}

static void response_may_have_many_headers(void **state)
{
    (void)state;
    enum { N = 1000 };
    char name[16], value[16];
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "X-%d", i);
        snprintf(value, sizeof value, "%d", i);
        assert_int_equal(add(name, value), 0);
    }
    assert_int_equal(r.n_fields, N);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "x-%d", i);
        snprintf(value, sizeof value, "%d", i);
        assert_str(mk_response_header(&r, mk_str_from_c(name)), value);
        assert_str(r.fields[i].value, value);
    }
}

static const struct mk_header_field block_fields[] = {
    {.name = MK_STR_INIT("ETag"), .value = MK_STR_INIT("\"x\"")}};
static const struct mk_header_block block = {
    .text = MK_STR_INIT("ETag: \"x\"\r\n"), .fields = block_fields, .n = 1};

static void response_header_blocks_are_searched_first(void **state)
{
    (void)state;
    assert_int_equal(add("ETag", "\"y\""), 0);
    mk_response_add_header_block(&r, &block);
    assert_str(mk_response_header(&r, MK_STR("etag")), "\"x\"");
}

static void add_a_block(void *ctx)
{
    (void)ctx;
    mk_response_add_header_block(&r, &block);
}

static void response_too_many_blocks_asserts(void **state)
{
    (void)state;
    for (int i = 0; i < MK_RESPONSE_BLOCKS; i++)
        mk_response_add_header_block(&r, &block);
    assert_aborts(add_a_block, NULL, "MK_RESPONSE_BLOCKS");
}

/* ---- Body ---- */

static unsigned n_closed;

static ssize_t pull(void *ctx, char *buffer, size_t cap)
{
    (void)ctx;
    (void)buffer;
    (void)cap;
    return 0;
}

static void close_source(void *ctx)
{
    assert_ptr_equal(ctx, &r);
    n_closed++;
}

static const struct mk_body_source_ops source = {.read = pull, .close = close_source};
static const struct mk_body_source_ops source_without_close = {.read = pull};

static mk_str text_of_content(void)
{
    const struct mk_response_body_part *p = mk_response_body_current_part(&r.content);
    return p ? p->bytes : MK_STR("");
}

static void response_last_body_is_kept(void **state)
{
    (void)state;
    char text[] = "copied";
    n_closed = 0;
    assert_int_equal(mk_response_set_body(&r, mk_str_from_c(text)), 0);
    memset(text, '?', sizeof text - 1);
    assert_str(text_of_content(), "copied");
    assert_int_equal(mk_response_set_body_nocopy(&r, MK_STR("static")), 0);
    assert_str(text_of_content(), "static");
    assert_int_equal(r.content.length, 6);
    assert_int_equal(mk_response_set_body_source(&r, &source, &r, 100), 0);
    assert_int_equal(r.content.length, 100);
    assert_int_equal(n_closed, 0);
    assert_int_equal(mk_response_set_body_source(&r, &source, &r, MK_LENGTH_UNKNOWN), 0);
    assert_true(r.content.length == MK_RESPONSE_BODY_UNKNOWN);
    assert_int_equal(n_closed, 1);
    assert_int_equal(mk_response_set_body(&r, MK_STR("")), 0);
    assert_int_equal(n_closed, 2);
    assert_int_equal(r.content.length, 0);
    assert_null(r.content.source);
}

static void response_rejected_source_is_closed(void **state)
{
    (void)state;
    n_closed = 0;
    assert_int_equal(mk_response_set_body_source(&r, &source, &r, -2), -EINVAL);
    assert_int_equal(n_closed, 1);
    r.sealed = true;
    assert_int_equal(mk_response_set_body_source(&r, &source, &r, 5), -EALREADY);
    assert_int_equal(n_closed, 2);
    assert_int_equal(mk_response_set_body_source(&r, &source_without_close, &r, 5), -EALREADY);
    assert_null(r.content.source);
}

static void response_rejected_owned_body_is_freed(void **state)
{
    (void)state;
    n_closed = 0;
    assert_int_equal(mk_response_set_body_owned(&r, MK_STR("owned"), NULL, &r), -EINVAL);
    assert_int_equal(mk_response_set_body_owned(&r, MK_STR("owned"), close_source, &r), 0);
    assert_str(text_of_content(), "owned");
    r.sealed = true;
    assert_int_equal(n_closed, 0);
    assert_int_equal(mk_response_set_body_owned(&r, MK_STR("late"), close_source, &r), -EALREADY);
    assert_int_equal(n_closed, 1);
    assert_str(text_of_content(), "owned");
}

static void response_sealed_cannot_change(void **state)
{
    (void)state;
    assert_int_equal(mk_response_set_status(&r, 201), 0);
    assert_int_equal(add("A", "b"), 0);
    assert_int_equal(mk_response_set_body_nocopy(&r, MK_STR("content")), 0);
    r.sealed = true;
    assert_int_equal(mk_response_set_status(&r, 500), -EALREADY);
    assert_int_equal(mk_response_set_status(&r, 1), -EALREADY);
    assert_int_equal(add("B", "c"), -EALREADY);
    assert_int_equal(mk_response_set_body_nocopy(&r, MK_STR("x")), -EALREADY);
    assert_int_equal(mk_response_set_body(&r, MK_STR("x")), -EALREADY);
    assert_int_equal(mk_response_status(&r), 201);
    assert_int_equal(r.n_fields, 1);
    assert_str(text_of_content(), "content");
}

static void reset_it(void *ctx)
{
    (void)ctx;
    mk_response_reset(&r);
}

static void response_reset_works_until_sealed(void **state)
{
    (void)state;
    n_closed = 0;
    assert_int_equal(mk_response_set_status(&r, 201), 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(add("A", "b"), 0);
    mk_response_add_header_block(&r, &block);
    assert_int_equal(mk_response_set_body_source(&r, &source, &r, 5), 0);
    mk_response_reset(&r);
    assert_int_equal(n_closed, 1);
    assert_int_equal(mk_response_status(&r), 200);
    assert_null(mk_response_header(&r, MK_STR("A")).p);
    assert_null(mk_response_header(&r, MK_STR("ETag")).p);
    assert_int_equal(r.content.length, 0);
    r.sealed = true;
    assert_aborts(reset_it, NULL, "!r->sealed");
}

static void response_some_statuses_have_no_body(void **state)
{
    (void)state;
    static const unsigned without[] = {100, 101, 199, 204, 304};
    for (unsigned status = 200; status < 600; status++)
        assert_int_equal(mk_status_has_content(status), status != 204 && status != 304);
    for (size_t i = 0; i < MK_LEN(without); i++)
        assert_false(mk_status_has_content(without[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(response_status_defaults_to_200, setup, teardown),
        fixture_test(response_headers_are_copied, setup, teardown),
        fixture_test(response_rejects_header_injection, setup, teardown),
        fixture_test(response_rejects_framing_headers, setup, teardown),
        fixture_test(response_date_and_server_of_origin_are_kept, setup, teardown),
        fixture_test(response_header_lines_become_a_block, setup, teardown),
        fixture_test(response_last_server_header_is_kept, setup, teardown),
        fixture_test(response_interim_is_validated, setup, teardown),
        fixture_test(response_may_have_many_headers, setup, teardown),
        fixture_test(response_header_blocks_are_searched_first, setup, teardown),
        fixture_test(response_too_many_blocks_asserts, setup, teardown),
        fixture_test(response_last_body_is_kept, setup, teardown),
        fixture_test(response_rejected_source_is_closed, setup, teardown),
        fixture_test(response_rejected_owned_body_is_freed, setup, teardown),
        fixture_test(response_sealed_cannot_change, setup, teardown),
        fixture_test(response_reset_works_until_sealed, setup, teardown),
        fixture_test(response_some_statuses_have_no_body, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
