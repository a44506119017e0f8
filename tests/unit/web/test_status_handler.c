/* SPDX-License-Identifier: Apache-2.0 */
#include "web/status_handler.h"

#include "unit/web/site_case.h"

static void status_handler_handles_every_method(void **state)
{
    (void)state;
    assert_int_equal(mk_status_handler.methods, 0);
    assert_string_equal(mk_status_handler.name, "status");
}

static void expect(struct mk_status_handler answer, enum mk_verdict verdict)
{
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_int_equal(mk_status_handler.handle(&x->request, &x->response, &answer), verdict);
    assert_int_equal(x->response.status, answer.status);
    assert_int_equal(x->response.content.length, answer.text.len);
    if (answer.text.p)
        assert_str(site_field(x, "Content-Type"), "text/plain; charset=utf-8");
    mk_exchange_free(x);
}

static void status_handler_error_without_text_gets_error_page(void **state)
{
    (void)state;
    expect((struct mk_status_handler){.status = 403}, MK_ERROR);
    expect((struct mk_status_handler){.status = 503, .text = MK_STR("soon\n")}, MK_DONE);
}

static void status_handler_success_has_text_or_no_body(void **state)
{
    (void)state;
    expect((struct mk_status_handler){.status = 200, .text = MK_STR("ok\n")}, MK_DONE);
    expect((struct mk_status_handler){.status = 204}, MK_DONE);
    expect((struct mk_status_handler){.status = 200}, MK_DONE);
}

static void status_handler_rejects_statuses_with_semantics(void **state)
{
    (void)state;
    static const unsigned good[] = {200, 204, 205, 299, 400, 451, 503, 599},
                          bad[] = {0, 100, 199, 206, 301, 304, 399, 600};
    for (size_t i = 0; i < MK_LEN(good); i++)
        assert_true(mk_status_handler_allows(good[i]));
    for (size_t i = 0; i < MK_LEN(bad); i++)
        assert_false(mk_status_handler_allows(bad[i]));
    assert_true(mk_status_handler_may_have_body(200));
    assert_false(mk_status_handler_may_have_body(204));
    assert_false(mk_status_handler_may_have_body(205));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(status_handler_handles_every_method, setup),
        fixture_test(status_handler_error_without_text_gets_error_page, setup),
        fixture_test(status_handler_success_has_text_or_no_body, setup),
        fixture_test(status_handler_rejects_statuses_with_semantics, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
