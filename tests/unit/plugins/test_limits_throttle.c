/* SPDX-License-Identifier: Apache-2.0 */
/* Sends response bodies at a limited rate. The test controls the clock, the timer and the body. */
#include "unit/fixtures.h"
#include "unit/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rate.h"
#include "rate_key.h"
#include "throttle.h"

static int some;
#define REQUEST  ((struct mk_request *)(void *)&some)
#define RESPONSE ((struct mk_response *)(void *)&some)

/* ---- Fake server ---- */

static uint64_t now;
static void *buffer;
static int64_t length;
static uint64_t source; /* bytes of the body still unsent */
static const struct mk_filter_ops *filter;
static void *filter_ctx;
static struct mk_timer *timer; /* armed or due; NULL: stopped */
static uint32_t timer_ms;      /* 0: not armed */
static bool has_memory;
static unsigned resumed;

struct mk_worker *mk_request_worker(const struct mk_request *r)
{
    return (struct mk_worker *)(void *)(uintptr_t)r;
}

uint64_t mk_worker_now_ms(const struct mk_worker *w)
{
    (void)w;
    return now;
}

void *mk_request_alloc(struct mk_request *r, size_t size)
{
    (void)r;
    free(buffer);
    buffer = has_memory ? malloc(size) : NULL;
    if (buffer)
        memset(buffer, 0x55, size);
    return buffer;
}

void mk_timer_set(struct mk_timer *t, struct mk_worker *w, uint32_t ms)
{
    (void)w;
    timer = t;
    timer_ms = ms;
}

void mk_timer_stop(struct mk_timer *t)
{
    assert_true(!timer || timer == t);
    timer = NULL;
}

void mk_request_resume(struct mk_request *r)
{
    assert_ptr_equal(r, REQUEST);
    resumed++;
}

int64_t mk_response_length(const struct mk_response *r)
{
    (void)r;
    return length;
}

int mk_response_add_filter(struct mk_response *r, const struct mk_filter_ops *ops, void *ctx, int64_t of)
{
    (void)r;
    assert_int_equal(of, length);
    filter = ops;
    filter_ctx = ctx;
    return 0;
}

ssize_t mk_filter_next_read(struct mk_filter_next *next, char *to, size_t cap)
{
    size_t n = source < cap ? (size_t)source : cap;
    (void)next, (void)to;
    source -= n;
    return (ssize_t)n;
}

uint64_t limits_rate_key_hash(const struct limits_rule *rule, const struct limits_table *table,
                              const struct mk_request *request, mk_str path)
{
    (void)table, (void)request, (void)path;
    return rule->id << 40 | rule->id;
}

/* ---- Responses ---- */

static struct limits_table *table;

static void setup(void)
{
    table = heap_setup(sizeof *table);
    now = 1000000;
    has_memory = true;
    resumed = 0;
    timer = NULL;
}

static void teardown(void)
{
    free(buffer);
    buffer = NULL;
    assert_null(timer); /* the timer was stopped */
}

/* Starts a response with this many bytes, or of unknown length. Returns true if the response gets a
 * filter. */
static bool respond(const struct limits_rule *const *rules, size_t n, uint64_t bytes, bool is_known)
{
    length = is_known ? (int64_t)bytes : -1;
    source = bytes;
    filter = NULL;
    timer_ms = 0;
    limits_throttle_response(table, rules, n, MK_STR("/"), REQUEST, RESPONSE);
    return filter;
}

static ssize_t pull(size_t cap)
{
    static char to[1 << 20];
    return filter->read(filter_ctx, NULL, to, cap);
}

/* Reads all bytes that may be sent now. */
static uint64_t pull_all(void)
{
    uint64_t all = 0;
    ssize_t n;
    while ((n = pull(1 << 20)) > 0)
        all += (uint64_t)n;
    assert_true(n == 0 || n == -EAGAIN);
    return all;
}

static void close_response(void)
{
    filter->close(filter_ctx);
}

/* Allows 16 portions of 1 KB a second, without a burst. */
static const struct limits_rule slow = {.rate = 16384, .by = LIMITS_BY_RESPONSE};
static const struct limits_rule shared = {.rate = 16384, .id = 1};
static const struct limits_rule *const one_slow[] = {&slow}, *const one_shared[] = {&shared};

static void throttle_body_is_sent_in_portions(void **state)
{
    (void)state;
    assert_true(respond(one_slow, 1, 4096, true));
    assert_int_equal(pull_all(), 1024);
    assert_int_equal(timer_ms, 63);
    now += 62;
    assert_int_equal(pull_all(), 0);
    assert_int_equal(timer_ms, 50); /* not earlier */
    now += 1;
    assert_int_equal(pull_all(), 1024);
    now += 62; /* now 125 ms after the start */
    assert_int_equal(pull_all(), 1024);
    now += 63;
    assert_int_equal(pull_all(), 1024);
    assert_int_equal(pull(100), 0); /* the end of the body is not delayed */
    close_response();
}

static void throttle_small_reads_share_portion(void **state)
{
    (void)state;
    assert_true(respond(one_slow, 1, 4096, true));
    assert_int_equal(pull(1000), 1000);
    assert_int_equal(pull(1000), 24);
    assert_int_equal(pull(1000), -EAGAIN);
    close_response();
}

static void throttle_timer_resumes_request(void **state)
{
    (void)state;
    assert_true(respond(one_slow, 1, 4096, true));
    assert_int_equal(pull_all(), 1024);
    timer->on_due(timer);
    assert_int_equal(resumed, 1);
    close_response();
}

/* The filter neither exceeds nor misses the rate, however the reader pulls. */
static void throttle_rate_holds_over_time(void **state)
{
    uint64_t sent = 0;
    (void)state;
    assert_true(respond(one_slow, 1, 1 << 20, false));
    for (int i = 0; i < 10 * 16; i++) {
        sent += pull_all();
        now += 62 + (unsigned)(i % 2); /* 62.5 on average */
    }
    assert_in_range(sent, 10 * 16384 - 2048, 10 * 16384 + 1024);
    close_response();
}

static void throttle_portion_grows_with_rate(void **state)
{
    const struct limits_rule fast = {.rate = 1 << 20, .by = LIMITS_BY_RESPONSE}, *const rules[] = {&fast};
    const struct limits_rule least = {.rate = 1024, .by = LIMITS_BY_RESPONSE}, *const lowest[] = {&least};
    (void)state;
    assert_true(respond(rules, 1, 1 << 20, true));
    assert_int_equal(pull_all(), (1 << 20) / 16);
    close_response();
    assert_true(respond(lowest, 1, 1 << 20, true));
    assert_int_equal(pull_all(), 1024); /* portions have a minimum size */
    assert_int_equal(timer_ms, 1000);
    close_response();
}

static void throttle_short_body_needs_no_filter(void **state)
{
    const struct limits_rule rule = {.rate = 16384, .free = 5000, .by = LIMITS_BY_RESPONSE}, *const rules[] =
                                                                                                 {&rule};
    (void)state;
    assert_false(respond(one_slow, 1, 1024, true));
    assert_true(respond(one_slow, 1, 1025, true));
    close_response();
    assert_true(respond(one_slow, 1, 10, false)); /* an unknown length may exceed the burst */
    close_response();
    assert_false(respond(rules, 1, 5000, true));
    assert_true(respond(rules, 1, 5001, true));
    close_response();
}

static void throttle_first_bytes_are_free(void **state)
{
    const struct limits_rule rule = {.rate = 16384, .free = 5000, .by = LIMITS_BY_RESPONSE}, *const rules[] =
                                                                                                 {&rule};
    (void)state;
    assert_true(respond(rules, 1, 10000, true));
    assert_int_equal(pull(3000), 3000);
    assert_int_equal(pull(3000), 2000);
    assert_int_equal(pull_all(), 1024);
    now += 63;
    assert_int_equal(pull_all(), 1024);
    close_response();
}

/* ---- Shared rates ---- */

static void throttle_responses_of_client_share_rate(void **state)
{
    (void)state;
    assert_true(respond(one_shared, 1, 4096, true));
    assert_int_equal(pull_all(), 1024);
    close_response();
    assert_true(respond(one_shared, 1, 1024, true)); /* waits, although the body fits into a portion */
    assert_int_equal(pull_all(), 0);
    assert_int_equal(timer_ms, 63);
    now += 63;
    assert_int_equal(pull_all(), 1024);
    close_response();
    assert_false(respond(one_slow, 1, 1024, true)); /* a response with its own limit does not wait */
}

/* A client that disconnects does not use up the bandwidth of others. */
static void throttle_unsent_bytes_are_refunded(void **state)
{
    (void)state;
    assert_true(respond(one_shared, 1, 4096, true));
    close_response();
    assert_true(respond(one_shared, 1, 4096, true));
    assert_int_equal(pull(24), 24);
    close_response(); /* 1000 bytes of the portion remain unsent */
    assert_true(respond(one_shared, 1, 4096, true));
    assert_int_equal(pull_all(), 0);
    now += 2;
    assert_int_equal(pull_all(), 1024);
    close_response();
}

static void throttle_slowest_rule_applies(void **state)
{
    const struct limits_rule fast = {.rate = 32768, .free = 100, .id = 2}, *const rules[] = {&fast, &shared};
    (void)state;
    assert_true(respond(rules, 2, 1 << 20, true));
    assert_int_equal(pull_all(), 1024);
    assert_int_equal(timer_ms, 63);
    now += 63;
    assert_int_equal(pull_all(), 1024);
    close_response();
}

/* If a long wait were charged, the response would hold a reservation that it cannot use yet. */
static void throttle_long_wait_is_not_charged(void **state)
{
    const struct limits_rule fast = {.rate = 1 << 20, .id = 2}, *const both[] = {&fast, &shared};
    const struct limits_rule *const one_fast[] = {&fast};
    const struct limits_charge all = {.cost = (uint64_t)10050 * LIMITS_TICKS};
    uint64_t subject = limits_rate_key_hash(&shared, table, NULL, MK_STR("/"));
    (void)state;
    assert_int_equal(limits_bucket_charge(limits_table_bucket(table, subject), subject, now, &all),
                     0); /* charges 10.05 s in advance */
    assert_true(respond(both, 2, 1 << 20, true));
    assert_int_equal(pull_all(), 0);
    assert_int_equal(timer_ms, 1000); /* capped, so that the peer does not time out */
    close_response();
    assert_false(respond(one_fast, 1, 1024, true));  /* the portion of the other rule was refunded */
    assert_true(respond(one_shared, 1, 4096, true)); /* the wait is still too long */
    now += 51;
    assert_int_equal(pull_all(), 0);
    close_response();
    assert_true(respond(one_shared, 1, 4096, true)); /* now the response is charged */
    assert_int_equal(pull_all(), 0);
    now += 9998;
    assert_int_equal(pull_all(), 0);
    now += 1;
    assert_int_equal(pull_all(), 1024);
    close_response();
}

/* ---- Failed allocations ---- */

static void throttle_without_memory_is_off(void **state)
{
    (void)state;
    has_memory = false;
    assert_false(respond(one_shared, 1, 4096, true));
    has_memory = true;
    assert_true(respond(one_shared, 1, 4096, true));
    assert_int_equal(pull_all(), 1024); /* the earlier response has cost nothing */
    close_response();
}

int main(void)
{
    const struct CMUnitTest tests[] = {fixture_test(throttle_body_is_sent_in_portions, setup, teardown),
                                       fixture_test(throttle_small_reads_share_portion, setup, teardown),
                                       fixture_test(throttle_timer_resumes_request, setup, teardown),
                                       fixture_test(throttle_rate_holds_over_time, setup, teardown),
                                       fixture_test(throttle_portion_grows_with_rate, setup, teardown),
                                       fixture_test(throttle_short_body_needs_no_filter, setup, teardown),
                                       fixture_test(throttle_first_bytes_are_free, setup, teardown),
                                       fixture_test(throttle_responses_of_client_share_rate, setup, teardown),
                                       fixture_test(throttle_unsent_bytes_are_refunded, setup, teardown),
                                       fixture_test(throttle_slowest_rule_applies, setup, teardown),
                                       fixture_test(throttle_long_wait_is_not_charged, setup, teardown),
                                       fixture_test(throttle_without_memory_is_off, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
