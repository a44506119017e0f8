/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/report.h"

#include "unit/test.h"

static struct wr_options options;
static struct wr_measurement shots[2];
static struct wr_process process;
static char wrk[] = "wrk", url[] = "http://h/a b";
static char *words[] = {wrk, url, NULL};
static struct wr_step step;
static struct wr_sweep sweep;
static char buffer[1 << 16];

static struct mk_buf fresh(void)
{
    return mk_buf_fixed(buffer, sizeof buffer);
}

static void setup(void)
{
    options = (struct wr_options){.shots = 2, .n_steps = 1, .steps = {100}};
    for (size_t i = 0; i < MK_LEN(shots); i++) {
        wr_measurement_init(&shots[i]);
        shots[i].reported.requests = 1000;
        shots[i].reported.rate = 1000 + 500 * (double)i;
        shots[i].reported.errors.timeout = (int64_t)i;
        shots[i].server = (struct wr_load){.user_us = 40000, .system_us = 60000, .cores = 1, .busy = 0.2};
        shots[i].client = (struct wr_load){.user_us = 1, .system_us = 2, .cores = 1, .busy = 0.99};
        wr_measurement_find_bottleneck(&shots[i]);
    }
    step = (struct wr_step){.concurrency = 100, .shots = shots, .n = MK_LEN(shots), .syscalls = WR_UNKNOWN};
    process = (struct wr_process){.pid = 77, .name = "ng)\"x"};
    sweep = (struct wr_sweep){.options = &options,
                              .command = {.kind = wr_client_type_find(MK_STR("wrk")), .words = words, .n = 2},
                              .server = {.all = &process, .n = 1},
                              .server_name = "ng)\"x",
                              .url = MK_STR("http://h/a"),
                              .steps = &step,
                              .n_steps = 1,
                              .ended_us = (uint64_t)93784 * 1000000};
}

static void report_table_has_minimum_median_and_maximum(void **state)
{
    (void)state;
    struct mk_buf out = fresh();
    wr_table_write_row(&sweep, &step, &out);
    assert_str(mk_buf_str(&out), "        100       1000        1250        1500       40       60    100.00 "
                                 "        -         -         - "
                                 "        -         -        1         -         -      20      99 client\n");
}

static void report_titles_are_above_their_columns(void **state)
{
    (void)state;
    struct mk_buf out = fresh();
    wr_table_write_header(&sweep, &out);
    assert_contains(mk_buf_str(&out),
                    "Server       ng)\"x, process 77; processor time from its processes\n"
                    "Range        100 connections, 2 shots each\nCommand      wrk 'http://h/a b'\n"
                    "Responses    not checked\n\n"
                    "connections requests/s  requests/s  requests/s     user ");
    options.shots = 1;
    options.n_steps = 3;
    options.steps[1] = 200;
    options.steps[2] = 300;
    sweep.was_checked = true;
    sweep.checked.status = 200;
    out = fresh();
    wr_table_write_header(&sweep, &out);
    assert_contains(mk_buf_str(&out), "Range        100 to 300 by 100 connections, 1 shot each\n");
    assert_contains(mk_buf_str(&out), "GET http://h/a: status 200, 0 bytes, SHA-1 00000000");
    options.steps[2] = 1000;
    out = fresh();
    wr_table_write_header(&sweep, &out);
    assert_contains(mk_buf_str(&out), "Range        100, 200, 1000 connections, 1 shot each\n");
}

static void report_elapsed_time_has_days_to_seconds(void **state)
{
    (void)state;
    struct mk_buf out = fresh();
    wr_table_write_footer(&sweep, &out);
    assert_str(mk_buf_str(&out), "\nElapsed      1 day, 2 hours, 3 minutes, 4 seconds\n");
}

static void report_csv_has_a_cell_for_each_column(void **state)
{
    (void)state;
    struct mk_buf out = fresh();
    wr_csv_write_header(&out);
    wr_csv_write_rows(&step, &out);
    mk_str text = mk_buf_str(&out);
    size_t commas = 0;
    for (int line = 0; line < 3; line++) {
        mk_str row = mk_str_cut(&text, '\n');
        size_t n = 0;
        for (size_t i = 0; i < row.len; i++)
            n += row.p[i] == ',';
        assert_true(n > 0 && (line == 0 || n == commas));
        commas = n;
        assert_true(line == 0 || mk_str_ends(row, MK_STR(",client,")));
    }
    assert_int_equal(text.len, 0);
}

static void report_json_has_null_for_unknown_values(void **state)
{
    (void)state;
    struct mk_buf out = fresh();
    wr_json_write(&sweep, true, &out);
    mk_str text = mk_buf_str(&out);
    assert_contains(text, "\"server\":{\"name\":\"ng)\\\"x\",\"pids\":[77],\"found_by\":\"port\"}");
    assert_contains(text, "\"check\":null");
    assert_contains(text, "\"pss_kb\":null");
    assert_contains(text, "\"syscalls\":null");
    assert_contains(text, "\"bottleneck\":\"client\"");
    assert_contains(text, "\"rate\":{\"min\":1000.000,\"median\":1250.000,\"max\":1500.000}");
    assert_contains(text, "\"cpu_counted_by\":\"processes\"");
}

static void report_doubt_is_in_all_formats(void **state)
{
    (void)state;
    struct mk_buf out = fresh();
    wr_json_write(&sweep, true, &out);
    assert_contains(mk_buf_str(&out), "\"doubt\":null");
    shots[1].reported.doubt = "late, and so on";
    out = fresh();
    wr_json_write(&sweep, true, &out);
    assert_contains(mk_buf_str(&out), "\"doubt\":\"late, and so on\"");
    out = fresh();
    wr_csv_write_rows(&step, &out);
    assert_contains(mk_buf_str(&out), ",client,\n");
    assert_contains(mk_buf_str(&out), ",client,\"late, and so on\"\n");
    out = fresh();
    wr_table_write_row(&sweep, &step, &out);
    assert_contains(mk_buf_str(&out), " client, in doubt\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(report_table_has_minimum_median_and_maximum, setup),
        fixture_test(report_titles_are_above_their_columns, setup),
        fixture_test(report_elapsed_time_has_days_to_seconds, setup),
        fixture_test(report_csv_has_a_cell_for_each_column, setup),
        fixture_test(report_json_has_null_for_unknown_values, setup),
        fixture_test(report_doubt_is_in_all_formats, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
