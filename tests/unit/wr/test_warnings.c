/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/warnings.h"

#include "unit/test.h"

enum { SHOTS = 3 };

static struct wr_measurement shots[SHOTS];
static struct wr_step step;

static void setup(void)
{
    step = (struct wr_step){.concurrency = 100, .shots = shots, .n = SHOTS};
    for (size_t i = 0; i < SHOTS; i++)
        wr_measurement_init(&shots[i]);
}

static void fill(size_t i, double client, unsigned client_cores, double server, unsigned server_cores)
{
    shots[i].client = (struct wr_load){.user_us = 1, .busy = client, .cores = client_cores};
    shots[i].server =
        (struct wr_load){.user_us = 1, .busy = server, .busiest = server, .cores = server_cores};
    wr_measurement_find_bottleneck(&shots[i]);
}

static void expect(const char *text)
{
    char buffer[512];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    assert_int_equal(wr_warnings_format_bottleneck(&step, &out), *text != '\0');
    assert_str(mk_buf_str(&out), text);
}

static void warnings_client_bottleneck_is_reported_with_numbers(void **state)
{
    (void)state;
    fill(0, 0.98, 1, 0.41, 2);
    fill(1, 0.50, 1, 0.50, 2);
    fill(2, 0.99, 1, 0.42, 2);
    expect("100 connections: the client is the bottleneck in 2 of 3 shots (it uses 99 % of 1 core, the "
           "server 42 % "
           "of 2): this measures the client; give it more cores or threads, or use a faster one");
}

static void warnings_server_bottleneck_is_reported_with_numbers(void **state)
{
    (void)state;
    fill(0, 0.30, 1, 0.97, 4);
    fill(1, 0.31, 1, 0.98, 4);
    fill(2, 0.32, 1, 0.99, 4);
    expect("100 connections: the server is the bottleneck in 3 of 3 shots (it uses 99 % of 4 cores, the "
           "client 32 % "
           "of 1)");
}

/* A shot that measured the client is worse than one that measured a busy server. */
static void warnings_client_has_priority_over_server(void **state)
{
    (void)state;
    fill(0, 0.30, 1, 0.97, 1);
    fill(1, 0.97, 2, 0.30, 1);
    fill(2, 0.30, 1, 0.97, 1);
    expect("100 connections: the client is the bottleneck in 1 of 3 shots (it uses 97 % of 2 cores, the "
           "server 30 % "
           "of 1): this measures the client; give it more cores or threads, or use a faster one");
}

static void warnings_no_bottleneck_below_the_limit(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHOTS; i++)
        fill(i, 0.94, 1, 0.94, 1);
    expect("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(warnings_client_bottleneck_is_reported_with_numbers, setup),
        fixture_test(warnings_server_bottleneck_is_reported_with_numbers, setup),
        fixture_test(warnings_client_has_priority_over_server, setup),
        fixture_test(warnings_no_bottleneck_below_the_limit, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
