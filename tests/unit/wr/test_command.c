/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/command.h"

#include <stdio.h>

#include "unit/test.h"

enum { WORDS = 16, LINE = 256 };

/* Expects the command line that wr builds from `line` with this concurrency. */
static void expect(const char *line, unsigned concurrency, const char *expected)
{
    char text[LINE], buffer[LINE], *words[WORDS] = {NULL};
    struct mk_arena arena;
    struct wr_command c;
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer), in = mk_buf_fixed(text, sizeof text);
    mk_str rest = mk_str_from_c(line);
    for (size_t i = 0; rest.p; i++) {
        size_t from = in.len;
        mk_buf_add(&in, mk_str_cut(&rest, ' '));
        mk_buf_add_char(&in, '\0');
        words[i] = text + from;
    }
    mk_arena_init(&arena, NULL);
    assert_true(wr_command_init(&c, words, &arena));
    char **made = wr_command_build_argv(&c, concurrency, &arena);
    assert_non_null(made);
    wr_command_format(made, &out);
    assert_str(mk_buf_str(&out), expected);
    mk_arena_fini(&arena);
}

static void command_concurrency_is_inserted(void **state)
{
    (void)state;
    expect("h2load -n 10 URL", 20, "h2load -c 20 -n 10 URL");
    expect("h2load -c {c} -n 10 URL", 20, "h2load -c 20 -n 10 URL");
    expect("h2load --clients={c} -n {c}00 URL", 20, "h2load --clients=20 -n 2000 URL");
    expect("h2load -n 10 -c 5 URL", 20, "h2load -n 10 -c 20 URL");
    expect("h2load -n 10 -c5 URL", 20, "h2load -n 10 -c20 URL");
    expect("h2load -n 10 -c 5 URL", 0, "h2load -n 10 -c 5 URL");
    expect("/usr/bin/h2load URL", 1, "/usr/bin/h2load -c 1 URL");
}

static void command_required_option_is_added_once(void **state)
{
    (void)state;
    expect("wrk -d 1 URL", 20, "wrk -c 20 --latency -d 1 URL");
    expect("wrk --latency -c 20 URL", 30, "wrk --latency -c 30 URL");
    expect("wrk URL", 0, "wrk --latency URL");
}

static void command_uncounted_warm_up_is_rejected(void **state)
{
    (void)state;
    char h2load[] = "h2load", warm[] = "--warm-up-time=1", url[] = "http://h/";
    char *words[] = {h2load, warm, url, NULL};
    struct mk_arena arena;
    struct wr_command c;
    mk_arena_init(&arena, NULL);
    assert_false(wr_command_init(&c, words, &arena));
    mk_arena_fini(&arena);
}

static void command_words_are_quoted_for_a_shell(void **state)
{
    (void)state;
    expect("siege it's &c", 0, "siege -j 'it'\\''s' '&c'");
}

static void command_own_concurrency_and_headers_are_known(void **state)
{
    (void)state;
    char wrk[] = "wrk", c10[] = "-c10", h[] = "-H", field[] = "Host: a", url[] = "http://h/",
         conns[] = "--connections=3";
    char *words[] = {wrk, c10, h, field, url, NULL}, *other[] = {wrk, conns, url, NULL};
    struct mk_arena arena;
    struct wr_command c;
    mk_arena_init(&arena, NULL);
    assert_true(wr_command_init(&c, words, &arena));
    assert_int_equal(wr_command_concurrency(&c), 10);
    assert_string_equal(c.fields[0], "Host: a");
    assert_null(c.fields[1]);
    assert_null(wr_command_find_concurrency_conflict(&c));
    assert_str(wr_command_find_url(words), "http://h/");
    assert_true(wr_command_init(&c, other, &arena));
    assert_int_equal(wr_command_concurrency(&c), 0);
    assert_string_equal(wr_command_find_concurrency_conflict(&c), "--connections=3");
    mk_arena_fini(&arena);
}

static const char *conflict(const char *first, const char *second)
{
    static char buffer[3][LINE];
    static struct wr_command c;
    char *words[4] = {buffer[0], buffer[1], buffer[2], NULL};
    struct mk_arena arena;
    mk_arena_init(&arena, NULL);
    snprintf(buffer[0], LINE, "%s", "ab");
    snprintf(buffer[1], LINE, "%s", first);
    snprintf(buffer[2], LINE, "%s", second);
    assert_true(wr_command_init(&c, words, &arena));
    const char *word = wr_command_find_concurrency_conflict(&c);
    mk_arena_fini(&arena);
    return word;
}

static void command_other_concurrency_options_are_rejected(void **state)
{
    (void)state;
    static const char *const own[] = {"-kc",       "-kc100",         "-rkc5",
                                      "--conn=5",  "--con",          "--connections=3",
                                      "--clients", "--concurrent=7", "--concurrency"};
    static const char *const others[] = {"-c",   "-c5", "-k", "-n100", "--close", "--content-type=a",
                                         "--cl", "-H"};
    for (size_t i = 0; i < MK_LEN(own); i++)
        assert_non_null(conflict(own[i], "5"));
    for (size_t i = 0; i < MK_LEN(others); i++)
        assert_null(conflict(others[i], "5"));
    assert_null(conflict("-kc", "{c}"));
    assert_null(conflict("-kc{c}", "5"));
    assert_null(conflict("--connections={c}", "5"));
    assert_null(conflict("-H", "-kc5"));
}

static void command_from_url_runs_weighttp(void **state)
{
    (void)state;
    char url[] = "http://h/", buffer[LINE];
    struct mk_arena arena;
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    mk_arena_init(&arena, NULL);
    wr_command_format(wr_command_from_url(url, 500, true, &arena), &out);
    assert_str(mk_buf_str(&out), "weighttp -n 500 -t 10 -k http://h/");
    mk_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_concurrency_is_inserted),
        cmocka_unit_test(command_required_option_is_added_once),
        cmocka_unit_test(command_uncounted_warm_up_is_rejected),
        cmocka_unit_test(command_words_are_quoted_for_a_shell),
        cmocka_unit_test(command_own_concurrency_and_headers_are_known),
        cmocka_unit_test(command_other_concurrency_options_are_rejected),
        cmocka_unit_test(command_from_url_runs_weighttp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
