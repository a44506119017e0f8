/* SPDX-License-Identifier: Apache-2.0 */
#include "web/access_record.h"

#include <time.h>

#include "unit/site.h"
#include "unit/test.h"

static struct site site;
static unsigned n_records;

static void setup(void)
{
    site_setup(&site);
    n_records = 0;
}

static void outcome_has_name(void **state)
{
    (void)state;
    for (unsigned i = 0; i <= MK_OUTCOME_SHUTDOWN; i++)
        assert_true(strlen(mk_outcome_name((enum mk_outcome)i)) > 1);
    assert_string_equal(mk_outcome_name(MK_OUTCOME_CLIENT_ABORTED), "client_aborted");
    assert_string_equal(mk_outcome_name((enum mk_outcome)(MK_OUTCOME_SHUTDOWN + 1)), "");
}

static void on_done(const struct mk_access_record *r, void *data)
{
    const struct mk_exchange *x = *(struct mk_exchange **)data;
    n_records++;
    assert_ptr_equal(mk_access_record_request(r), &x->request);
    assert_int_equal(mk_access_record_status(r), x->response.sealed ? 200 : 0);
    assert_int_equal(mk_access_record_outcome(r), MK_OUTCOME_TIMEOUT);
    assert_int_equal(mk_access_record_sent(r), 5);
    if (x->response.sealed)
        assert_str(mk_access_record_header(r, MK_STR("content-type")), "text/plain; charset=utf-8");
    else
        assert_null(mk_access_record_header(r, MK_STR("content-type")).p);
    assert_null(mk_access_record_header(r, MK_STR("X-None")).p);
    if (site.web.precise)
        assert_in_range(mk_access_record_duration_us(r), 2000, 1000000);
    else
        assert_int_equal(mk_access_record_duration_us(r), 7000);
}

static void finish_request(bool sealed)
{
    struct mk_exchange *x = site_get(&site, "/f.txt", "");
    const struct mk_plugin plugin = {.name = "record", .on_done = on_done};
    const struct mk_hook hook = {.plugin = &plugin, .data = &x};
    const struct timespec nap = {.tv_nsec = 2000000};
    assert_non_null(x);
    assert_true(mk_dispatch_run(x));
    x->response.sealed = sealed;
    site.host.hooks.done = (struct mk_hook_list){.at = &hook, .n = 1};
    nanosleep(&nap, NULL);
    mk_dispatch_end(x, MK_OUTCOME_TIMEOUT, 0, 5, site.now_ms + 7);
    site.host.hooks.done.n = 0;
    mk_exchange_free(x);
}

static void access_record_describes_request(void **state)
{
    (void)state;
    site_add(&site, "f.txt", MK_STR("text"));
    finish_request(true);
    finish_request(false);
    site.web.precise = true;
    finish_request(true);
    assert_int_equal(n_records, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outcome_has_name),
        fixture_test(access_record_describes_request, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
