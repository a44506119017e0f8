/* SPDX-License-Identifier: Apache-2.0 */
/* The process slots of [CGI]: their states, and their distribution among clients. */
#include "unit/state_machine.h"

#include <monkey/request.h>
#include <monkey/worker.h>

#include "pool.h"

enum { REQUESTS = 8 };

/* A request, whose address is passed as struct mk_request. */
static struct request {
    struct cgi_queue_entry entry;
    struct cgi_client *client; /* charged for the process in the request's slot */
    struct mk_addr addr;
    unsigned resumed;
} requests[REQUESTS];

static struct cgi_pool pool;
static struct cgi_settings settings;

/* ---- Fake server ---- */

const struct mk_addr *mk_request_client_addr(const struct mk_request *r)
{
    return &((const struct request *)(const void *)r)->addr;
}

void mk_request_resume(struct mk_request *r)
{
    ((struct request *)(void *)r)->resumed++;
}

/* ---- Helpers ---- */

static int setup(void **state)
{
    (void)state;
    memset(requests, 0, sizeof requests);
    settings = (struct cgi_settings){.processes = 2, .per_address = 2, .waiting = 2};
    cgi_pool_init(&pool, NULL);
    return 0;
}

static bool ask(unsigned i, unsigned char client)
{
    requests[i].addr = (struct mk_addr){.ip = {[10] = 0xff, 0xff, 192, 0, 2, client}};
    return cgi_pool_request_slot(&pool, &settings, &requests[i].entry,
                                 (struct mk_request *)(void *)&requests[i]);
}

static void start_process(unsigned i)
{
    requests[i].client = cgi_pool_use_slot(&requests[i].entry);
}

static void expect_state(unsigned i, enum cgi_slot_state expected, unsigned resumed)
{
    assert_int_equal(requests[i].entry.state.current, expected);
    assert_int_equal(requests[i].resumed, resumed);
}

static void expect_empty(void)
{
    assert_int_equal(pool.used, 0);
    assert_int_equal(pool.waiting, 0);
    assert_null(pool.clients);
}

/* ---- Tests ---- */

static void slot_state_machine_has_these_transitions(void **state)
{
    (void)state;
    expect_state_machine(&cgi_slot_machine, "none: waiting, granted\n"
                                            "waiting: none, granted, rejected\n"
                                            "granted: none\n"
                                            "rejected: none\n");
}

static void slot_invariant_finds_waiting_entry_that_is_in_no_queue(void **state)
{
    struct cgi_queue_entry lost = {0};
    (void)state;
    mk_state_init(&lost.state, &cgi_slot_machine, CGI_SLOT_WAITING);
    assert_non_null(cgi_slot_machine.invariant(&lost));
    assert_true(ask(0, 1) && ask(1, 1) && ask(2, 1));
    for (unsigned i = 0; i < 3; i++)
        assert_null(cgi_slot_machine.invariant(&requests[i].entry));
    for (unsigned i = 3; i-- > 0;)
        cgi_pool_cancel(&pool, &requests[i].entry);
    expect_empty();
}

static void slot_of_exited_process_goes_to_waiting_request(void **state)
{
    (void)state;
    assert_true(ask(0, 1) && ask(1, 2) && ask(2, 3));
    expect_state(0, CGI_SLOT_GRANTED, 0);
    expect_state(2, CGI_SLOT_WAITING, 0);
    start_process(0);
    expect_state(0, CGI_SLOT_NONE, 0);
    cgi_pool_release_slot(&pool, requests[0].client);
    expect_state(2, CGI_SLOT_GRANTED, 1);
    cgi_pool_cancel(&pool, &requests[1].entry);
    cgi_pool_cancel(&pool, &requests[2].entry);
    expect_empty();
}

static void slot_of_cancelled_request_goes_to_client_with_fewest_processes(void **state)
{
    (void)state;
    assert_true(ask(0, 1) && ask(1, 1) && ask(2, 1) && ask(3, 2));
    cgi_pool_cancel(&pool, &requests[0].entry);
    expect_state(2, CGI_SLOT_WAITING, 0);
    expect_state(3, CGI_SLOT_GRANTED, 1);
    for (unsigned i = 1; i < 4; i++)
        cgi_pool_cancel(&pool, &requests[i].entry);
    expect_empty();
}

static void slot_queue_full_rejects_latest_request_of_busiest_client(void **state)
{
    (void)state;
    assert_true(ask(0, 1) && ask(1, 1) && ask(2, 1) && ask(3, 1));
    assert_true(ask(4, 2));
    expect_state(2, CGI_SLOT_WAITING, 0);
    expect_state(3, CGI_SLOT_REJECTED, 1);
    expect_state(4, CGI_SLOT_WAITING, 0);
    assert_false(ask(5, 1));
    expect_state(5, CGI_SLOT_NONE, 0);
    for (unsigned i = 5; i-- > 0;)
        cgi_pool_cancel(&pool, &requests[i].entry);
    expect_empty();
}

static void slot_cancel_is_repeatable(void **state)
{
    (void)state;
    assert_true(ask(0, 1));
    cgi_pool_cancel(&pool, &requests[0].entry);
    cgi_pool_cancel(&pool, &requests[0].entry);
    expect_empty();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(slot_state_machine_has_these_transitions, setup),
        cmocka_unit_test_setup(slot_invariant_finds_waiting_entry_that_is_in_no_queue, setup),
        cmocka_unit_test_setup(slot_of_exited_process_goes_to_waiting_request, setup),
        cmocka_unit_test_setup(slot_of_cancelled_request_goes_to_client_with_fewest_processes, setup),
        cmocka_unit_test_setup(slot_queue_full_rejects_latest_request_of_busiest_client, setup),
        cmocka_unit_test_setup(slot_cancel_is_repeatable, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
