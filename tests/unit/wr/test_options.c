/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/options.h"

#include "unit/test.h"

enum { WORDS = 24, LINE = 512 };

static struct wr_options o;

/* Parses "wr" and the words of the line. */
static bool parse(const char *line)
{
    static char text[LINE];
    static char *words[WORDS]; /* words to which the options refer */
    int n = 0;
    struct mk_buf in = mk_buf_fixed(text, sizeof text);
    for (mk_str rest = mk_str_from_c(line); rest.p; n++) {
        words[n] = text + in.len;
        mk_buf_add(&in, mk_str_cut(&rest, ' '));
        mk_buf_add_char(&in, '\0');
    }
    words[n] = NULL; /* getopt may have reordered the words */
    return wr_options_parse(n, words, &o);
}

static void options_original_sweep(void **state)
{
    (void)state;
    assert_true(parse("wr -p 12 -c 100 -l 500 -s 200 -r 1000 -k http://h/"));
    assert_int_equal(o.server.by, WR_FIND_BY_PID);
    assert_int_equal(o.server.pids[0], 12);
    assert_int_equal(o.n_steps, 3);
    assert_int_equal(o.steps[2], 500);
    assert_int_equal(o.requests, 1000);
    assert_true(o.keep_alive);
}

static void options_steps_do_not_exceed_the_last(void **state)
{
    (void)state;
    assert_true(parse("wr -c 1 -l 10 -s 4 -- wrk URL"));
    assert_int_equal(o.n_steps, 3);
    assert_int_equal(o.steps[2], 9);
    assert_true(parse("wr --steps 1,10,100 -- wrk URL"));
    assert_int_equal(o.n_steps, 3);
    assert_int_equal(o.steps[1], 10);
    assert_true(parse("wr -c 7 -- wrk -c 8 URL"));
    assert_int_equal(o.n_steps, 1);
}

static void options_warm_up_is_shots_or_seconds(void **state)
{
    (void)state;
    assert_true(parse("wr --warm-up 2 -- wrk URL"));
    assert_int_equal(o.warm_up_shots, 2);
    assert_true(parse("wr --warm-up 1.5s -- wrk URL"));
    assert_int_equal(o.warm_up_us, 1500000);
    assert_false(parse("wr --warm-up long -- wrk URL"));
    assert_false(parse("wr --warm-up -1s -- wrk URL"));
    assert_false(parse("wr --warm-up nans -- wrk URL"));
}

static void options_json_file_is_optional(void **state)
{
    (void)state;
    assert_true(parse("wr --json -- wrk URL"));
    assert_string_equal(o.json, "-");
    assert_string_equal(o.command[0], "wrk");
    assert_true(parse("wr --json a.json -- wrk URL"));
    assert_string_equal(o.json, "a.json");
    assert_string_equal(o.command[0], "wrk");
    assert_true(parse("wr --json=a.json wrk URL"));
    assert_string_equal(o.json, "a.json");
    assert_true(parse("wr --json -q -- wrk URL"));
    assert_string_equal(o.json, "-");
    assert_true(o.quiet);
}

static void options_of_the_client_are_kept(void **state)
{
    (void)state;
    assert_true(parse("wr -c 5 wrk -c 8 --latency URL"));
    assert_int_equal(o.steps[0], 5);
    assert_string_equal(o.command[1], "-c");
}

static void options_mistakes_are_rejected(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "wr",
        "wr -c 100",
        "wr -c 0 -- wrk URL",
        "wr -c x -- wrk URL",
        "wr -l 10 -s 1 -- wrk URL",
        "wr -c 10 -l 5 -s 1 -- wrk URL",
        "wr -c 10 -l 50 -- wrk URL",
        "wr -c 1 -l 5000 -s 1 -- wrk URL",
        "wr --steps 1,,2 -- wrk URL",
        "wr --steps 1 -c 2 -- wrk URL",
        "wr --port 70000 -- wrk URL",
        "wr --port 80 --name nginx -- wrk URL",
        "wr -p 1 --port 80 -- wrk URL",
        "wr --sha1 12 -- wrk URL",
        "wr --status 20 -- wrk URL",
        "wr --client-cores x -- wrk URL",
        "wr --interval 0 -- wrk URL",
        "wr -n 0 -- wrk URL",
        "wr --nonsense -- wrk URL",
        "wr -Z -- wrk URL",
        "wr -p",
    };
    for (size_t i = 0; i < MK_LEN(lines); i++)
        if (parse(lines[i]))
            fail_msg("%s was accepted", lines[i]);
}

static void options_expectations(void **state)
{
    (void)state;
    assert_true(
        parse("wr --status 404 --length 10 --sha1 2aae6c35c94fcfb415dbe95f408b9ce91ee846ED -- wrk URL"));
    assert_int_equal(o.expected.status, 404);
    assert_true(o.expected.has_length && o.expected.has_sha1);
    assert_int_equal(o.expected.sha1[19], 0xed);
    struct wr_check_result got = {.status = 404, .length = 10};
    memcpy(got.sha1, o.expected.sha1, sizeof got.sha1);
    assert_true(wr_response_check_compare(&got, &o.expected, MK_STR("u")));
    got.sha1[0] ^= 1;
    assert_false(wr_response_check_compare(&got, &o.expected, MK_STR("u")));
    got.sha1[0] ^= 1;
    got.length++;
    assert_false(wr_response_check_compare(&got, &o.expected, MK_STR("u")));
    got.length--;
    got.status = 200;
    assert_false(wr_response_check_compare(&got, &o.expected, MK_STR("u")));
    assert_true(wr_response_check_compare(&got, &(struct load_expected){0}, MK_STR("u")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_original_sweep),
        cmocka_unit_test(options_steps_do_not_exceed_the_last),
        cmocka_unit_test(options_warm_up_is_shots_or_seconds),
        cmocka_unit_test(options_json_file_is_optional),
        cmocka_unit_test(options_of_the_client_are_kept),
        cmocka_unit_test(options_mistakes_are_rejected),
        cmocka_unit_test(options_expectations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
