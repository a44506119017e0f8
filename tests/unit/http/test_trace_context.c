/* SPDX-License-Identifier: Apache-2.0 */
#include "http/trace_context.h"

#include "unit/test.h"

#define IDS "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"

static void traceparent_is_parsed_and_formatted(void **state)
{
    struct mk_traceparent t;
    char out[MK_TRACEPARENT_LEN];
    (void)state;
    assert_true(mk_traceparent_parse(MK_STR("00-" IDS "-01"), &t));
    assert_int_equal(t.trace_id[0], 0x0a);
    assert_int_equal(t.trace_id[15], 0x9c);
    assert_int_equal(t.span_id[7], 0x31);
    assert_int_equal(t.flags, MK_TRACE_SAMPLED);
    mk_traceparent_format(&t, out);
    assert_str(mk_str_of(out, sizeof out), "00-" IDS "-01");
}

static void traceparent_of_later_version_is_parsed_as_version_00(void **state)
{
    struct mk_traceparent t;
    (void)state;
    assert_true(mk_traceparent_parse(MK_STR("cc-" IDS "-01"), &t));
    assert_true(mk_traceparent_parse(MK_STR("cc-" IDS "-01-what-the-future-will-be-like"), &t));
    assert_false(mk_traceparent_parse(MK_STR("cc-" IDS "-01.what"), &t));
}

static void invalid_traceparent_is_rejected(void **state)
{
    static const char *const invalid[] = {
        "",
        "00-" IDS "-0",
        "00-" IDS "-011",
        "00-" IDS "-01-x",
        "ff-" IDS "-01",
        "0x-" IDS "-01",
        "00-" IDS "-0g",
        "00_" IDS "-01",
        "00-" IDS "_01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333.-01",
    };
    struct mk_traceparent t;
    (void)state;
    for (size_t i = 0; i < MK_LEN(invalid); i++)
        assert_false(mk_traceparent_parse(mk_str_from_c(invalid[i]), &t));
}

static bool parse_state(const char *line, char *buf, size_t cap, mk_str *out)
{
    struct mk_tracestate s = {.n = 0};
    struct mk_buf text = mk_buf_fixed(buf, cap);
    bool ok = mk_tracestate_add_line(&s, mk_str_from_c(line));
    mk_tracestate_format(&s, &text);
    *out = mk_buf_str(&text);
    return ok;
}

static void tracestate_is_normalized(void **state)
{
    char buf[MK_TRACESTATE_LEN_MAX];
    mk_str out;
    (void)state;
    assert_true(parse_state("rojo=00f067aa0ba902b7, congo=t61rcWkgMzE", buf, sizeof buf, &out));
    assert_str(out, "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
    assert_true(parse_state(" , a=1 ,\t,2b@sys=x y , c= ", buf, sizeof buf, &out));
    assert_str(out, "a=1,2b@sys=x y,c=");
    assert_true(parse_state("", buf, sizeof buf, &out));
    assert_str(out, "");
}

static void invalid_tracestate_is_rejected(void **state)
{
    static const char *const invalid[] = {"a",     "=1",     "A=1",  "a b=1",  "a=1,a=2",
                                          "a=1=2", "a=\x7f", "-a=1", "a\xe9=1"};
    char buf[MK_TRACESTATE_LEN_MAX];
    mk_str out;
    (void)state;
    for (size_t i = 0; i < MK_LEN(invalid); i++)
        assert_false(parse_state(invalid[i], buf, sizeof buf, &out));
}

/* Writes n members of `len` bytes each. */
static void write_members(struct mk_buf *line, unsigned n, unsigned len)
{
    for (unsigned i = 0; i < n; i++) {
        mk_buf_addf(line, "%sk%02u=", line->len ? "," : "", i);
        for (unsigned k = 4; k < len; k++)
            mk_buf_add_char(line, 'x');
    }
}

static void tracestate_has_at_most_32_members(void **state)
{
    char buf[4096];
    (void)state;
    for (unsigned n = 32; n <= 33; n++) {
        struct mk_buf line = mk_buf_fixed(buf, sizeof buf);
        struct mk_tracestate s = {.n = 0};
        write_members(&line, n, 5);
        assert_int_equal(mk_tracestate_add_line(&s, mk_buf_str(&line)), n == 32);
    }
}

static void long_tracestate_loses_long_members_first(void **state)
{
    char buf[4096], small[MK_TRACESTATE_LEN_MAX];
    struct mk_buf line = mk_buf_fixed(buf, sizeof buf), out = mk_buf_fixed(small, sizeof small);
    struct mk_tracestate s = {.n = 0};
    (void)state;
    write_members(&line, 1, 129);
    mk_buf_add(&line, MK_STR(","));
    assert_true(mk_tracestate_add_line(&s, mk_buf_str(&line)));
    struct mk_buf rest = mk_buf_fixed(buf + 2000, 2000);
    for (unsigned i = 0; i < 6; i++)
        mk_buf_addf(&rest, "s%u=%0*u,", i, 97, 0);
    assert_true(mk_tracestate_add_line(&s, mk_buf_str(&rest)));
    mk_tracestate_format(&s, &out);
    assert_false(out.failed);
    assert_true(mk_str_starts(mk_buf_str(&out), MK_STR("s0=")));
    assert_int_equal(out.len, 5 * 100 + 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traceparent_is_parsed_and_formatted),
        cmocka_unit_test(traceparent_of_later_version_is_parsed_as_version_00),
        cmocka_unit_test(invalid_traceparent_is_rejected),
        cmocka_unit_test(tracestate_is_normalized),
        cmocka_unit_test(invalid_tracestate_is_rejected),
        cmocka_unit_test(tracestate_has_at_most_32_members),
        cmocka_unit_test(long_tracestate_loses_long_members_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
