/* SPDX-License-Identifier: Apache-2.0 */
#include "demand.h"

#include <errno.h>

#include "unit/test.h"

static unsigned n_requests, n_busy;

bool acme_allow_list_has(const struct acme_allow_list *list, mk_str name)
{
    (void)list;
    return mk_str_starts(name, MK_STR("listed"));
}

int acme_message_send(struct mk_worker *worker, const struct mk_plugin *plugin, unsigned to,
                      const struct acme_message *m, mk_str name)
{
    (void)worker, (void)plugin, (void)to, (void)m, (void)name;
    n_requests++;
    return 0;
}

void acme_demand_stats_count(const struct mk_worker *worker, const struct acme_demand_stats *s,
                             enum acme_result result)
{
    (void)worker, (void)s;
    n_busy += result == ACME_RESULT_BUSY;
}

uint64_t mk_worker_now_ms(const struct mk_worker *worker)
{
    (void)worker;
    return 1000000;
}

unsigned mk_worker_index(const struct mk_worker *worker)
{
    (void)worker;
    return 0;
}

void mk_timer_set(struct mk_timer *timer, struct mk_worker *worker, uint32_t delay_ms)
{
    (void)timer, (void)worker, (void)delay_ms;
}

void mk_timer_stop(struct mk_timer *timer)
{
    (void)timer;
}

void mk_tls_waiter_resume(struct mk_tls_waiter *waiter, bool is_issued)
{
    (void)waiter, (void)is_issued;
}

/* Handshakes with the names PREFIX0.example, PREFIX1.example and so on, each from a client network of its own. */
static int request_names(struct acme_demand *d, const char *prefix, unsigned n)
{
    int e = 0;
    for (unsigned i = 0; i < n; i++) {
        char buf[64];
        struct mk_buf name = mk_buf_fixed(buf, sizeof buf);
        struct mk_addr client = {.ip = {0x20, 1, (uint8_t)(i >> 8), (uint8_t)i}};
        mk_buf_addf(&name, "%s%u.example", prefix, i);
        e = acme_demand_request(d, mk_buf_str(&name), &client, NULL);
    }
    return e;
}

static void demand_unlisted_names_leave_handshakes_to_listed_ones(void **state)
{
    (void)state;
    static const struct acme_demand_stats stats;
    struct acme_demand *d = acme_demand_new(NULL, NULL, &stats, NULL, NULL);
    assert_non_null(d);
    assert_int_equal(request_names(d, "x", 1000), -EBUSY);
    assert_int_equal(n_requests, 192);
    assert_int_equal(n_busy, 1000 - 192);
    assert_int_equal(request_names(d, "listed", 64), 0);
    assert_int_equal(request_names(d, "listed-too", 1), -EBUSY);
    assert_int_equal(n_requests, 256);
    acme_demand_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(demand_unlisted_names_leave_handshakes_to_listed_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
