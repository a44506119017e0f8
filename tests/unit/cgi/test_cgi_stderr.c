/* SPDX-License-Identifier: Apache-2.0 */
/* Splits the stderr of CGI programs into lines for a log. */
#include <monkey/cgi.h>
#include <stdio.h>

#include "unit/test.h"

enum { LEFT = 64 * 1024 };

struct received {
    char first[100], last[1000];
    size_t n_bytes, n_lines;
};

static void on_line(void *ctx, mk_str line)
{
    struct received *h = ctx;
    assert_in_range(line.len, 1, sizeof((struct mk_cgi_stderr *)0)->line);
    h->n_bytes += line.len;
    if (h->n_lines++ == 0)
        snprintf(h->first, sizeof h->first, "%.*s", MK_STR_ARG(line));
    snprintf(h->last, sizeof h->last, "%.*s", MK_STR_ARG(line));
}

static void cgi_stderr_joins_pieces_to_lines(void **state)
{
    struct received h = {.n_lines = 0};
    struct mk_cgi_stderr e = {.on_line = on_line, .ctx = &h, .remaining = LEFT, .limit_message = "full"};
    (void)state;
    mk_cgi_stderr_add(&e, MK_STR("on"));
    assert_int_equal(h.n_lines, 0);
    mk_cgi_stderr_add(&e, MK_STR("e\0\r\n\n\ntwo"));
    assert_int_equal(h.n_lines, 1);
    assert_string_equal(h.first, "one?");
    mk_cgi_stderr_flush(&e);
    mk_cgi_stderr_flush(&e);
    assert_int_equal(h.n_lines, 2);
    assert_string_equal(h.last, "two");
}

static void cgi_stderr_is_limited(void **state)
{
    static char long_text[3000];
    struct received h = {.n_lines = 0};
    struct mk_cgi_stderr e = {.on_line = on_line, .ctx = &h, .remaining = LEFT, .limit_message = "full"};
    (void)state;
    memset(long_text, 'x', sizeof long_text);
    for (int i = 0; i < 100; i++)
        mk_cgi_stderr_add(&e, mk_str_of(long_text, sizeof long_text));
    mk_cgi_stderr_flush(&e);
    assert_int_equal(h.n_bytes, LEFT + strlen("full"));
    assert_string_equal(h.last, "full");
    e.remaining = h.n_lines = 0; /* nothing more is logged, not even a message about the limit */
    mk_cgi_stderr_add(&e, MK_STR("line\n"));
    mk_cgi_stderr_flush(&e);
    assert_int_equal(h.n_lines, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cgi_stderr_joins_pieces_to_lines),
        cmocka_unit_test(cgi_stderr_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
