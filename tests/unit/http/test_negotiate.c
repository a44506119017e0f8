/* SPDX-License-Identifier: Apache-2.0 */
#include "http/negotiate.h"

#include "unit/headers.h"
#include "unit/test.h"

static struct mk_header_field buffer[4];

static unsigned q2(const char *first, const char *second, const char *coding)
{
    struct mk_headers fields;
    mk_headers_init(&fields, buffer);
    mk_str name = MK_STR("Accept-Encoding");
    if (first)
        assert_true(headers_add(&fields, MK_LEN(buffer), name, mk_str_from_c(first)));
    if (second)
        assert_true(headers_add(&fields, MK_LEN(buffer), name, mk_str_from_c(second)));
    return mk_negotiate_coding_q(&fields, MK_HEADER_ACCEPT_ENCODING, mk_str_from_c(coding));
}

static unsigned q(const char *value, const char *coding)
{
    return q2(value, NULL, coding);
}

static void negotiate_codings_have_weights(void **state)
{
    (void)state;
    const char *value = "gzip, deflate;q=0.5 ,br ; q=0.125,\tzstd;Q=1.000, x;q=0";
    assert_int_equal(q(value, "gzip"), 1000);
    assert_int_equal(q(value, "GZIP"), 1000);
    assert_int_equal(q(value, "deflate"), 500);
    assert_int_equal(q(value, "br"), 125);
    assert_int_equal(q(value, "zstd"), 1000);
    assert_int_equal(q(value, "x"), 0);
    assert_int_equal(q(value, "compress"), 0);
    assert_int_equal(q(value, "identity"), 1);
}

static void negotiate_identity_and_wildcard(void **state)
{
    (void)state;
    assert_int_equal(q("*", "br"), 1000);
    assert_int_equal(q("*", "identity"), 1000);
    assert_int_equal(q("*;q=0", "br"), 0);
    assert_int_equal(q("*;q=0", "identity"), 0);
    assert_int_equal(q("identity;q=0", "identity"), 0);
    assert_int_equal(q("identity;q=0.3, *;q=0", "identity"), 300);
    assert_int_equal(q("*;q=0, gzip", "gzip"), 1000);
    assert_int_equal(q("gzip;q=0, *", "gzip"), 0);
    assert_int_equal(q("*;q=0.2, *;q=0.3", "gzip"), 200);
}

static void negotiate_absent_and_empty_header(void **state)
{
    (void)state;
    assert_int_equal(q(NULL, "gzip"), 0);
    assert_int_equal(q(NULL, "identity"), 1000);
    assert_int_equal(q("", "gzip"), 0);
    assert_int_equal(q("", "identity"), 1);
}

static void negotiate_legacy_names_and_several_lines(void **state)
{
    (void)state;
    assert_int_equal(q("x-gzip", "gzip"), 1000);
    assert_int_equal(q("x-gzip", "br"), 0);
    assert_int_equal(q2("br", "gzip;q=0.4", "gzip"), 400);
    assert_int_equal(q2("gzip;q=0.1", "gzip;q=0.9", "gzip"), 100);
}

static void negotiate_weights_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        unsigned q;
    } cases[] = {
        {"a;q=0", 0},       {"a;q=0.", 0},       {"a;q=1", 1000},   {"a;q=1.", 1000}, {"a;q=0.001", 1},
        {"a;q=0.999", 999}, {"a;q=1.000", 1000}, {"a;q=0.5", 500},  {"a;q=0.05", 50}, {"a;q=1.001", 0},
        {"a;q=2", 0},       {"a;q=-1", 0},       {"a;q=0.1234", 0}, {"a;q=.5", 0},    {"a;q=", 0},
        {"a;q", 0},         {"a;", 0},           {"a;x=1", 0},      {"a;q=0.5;x", 0}, {"a;q=0,5", 0},
        {"a;q= 1", 0},      {"a;q =1", 0},       {"a;q=1x", 0},     {"a;q=0.x", 0},   {"a;q=\"1\"", 0},
        {"ab", 0},          {"a b", 0},          {"\"a\"", 0},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++)
        if (q(cases[i].value, "a") != cases[i].q)
            fail_msg("%s: %u", cases[i].value, q(cases[i].value, "a"));
}

/* ---- Media types ---- */

static unsigned type_q2(const char *first, const char *second, const char *type)
{
    struct mk_headers fields;
    mk_headers_init(&fields, buffer);
    mk_str name = MK_STR("Accept");
    if (first)
        assert_true(headers_add(&fields, MK_LEN(buffer), name, mk_str_from_c(first)));
    if (second)
        assert_true(headers_add(&fields, MK_LEN(buffer), name, mk_str_from_c(second)));
    return mk_negotiate_type_q(&fields, mk_str_from_c(type));
}

static unsigned type_q(const char *value, const char *type)
{
    return type_q2(value, NULL, type);
}

static void negotiate_rfc_example(void **state)
{
    (void)state;
    /* RFC 9110, section 12.5.1 */
    const char *value = "text/*;q=0.3, text/plain;q=0.7, text/plain;format=flowed, "
                        "text/plain;format=fixed;q=0.4, */*;q=0.5";
    assert_int_equal(type_q(value, "text/plain;format=flowed"), 1000);
    assert_int_equal(type_q(value, "text/plain"), 700);
    assert_int_equal(type_q(value, "text/html"), 300);
    assert_int_equal(type_q(value, "image/jpeg"), 500);
    assert_int_equal(type_q(value, "text/plain;format=fixed"), 400);
    assert_int_equal(type_q(value, "text/html;level=3"), 300);
}

static void negotiate_most_specific_range_applies(void **state)
{
    (void)state;
    assert_int_equal(type_q("*/*, text/html;q=0", "text/html"), 0);
    assert_int_equal(type_q("text/html;q=0, */*", "text/html"), 0);
    assert_int_equal(type_q("text/*;q=0, */*", "text/html"), 0);
    assert_int_equal(type_q("*/*;q=0.1, text/*;q=0.2", "image/png"), 100);
    assert_int_equal(type_q("text/html;q=0.2, text/html;q=0.9", "text/html"), 200);
    assert_int_equal(type_q2("text/*;q=0.2", "text/html;q=0.9", "text/html"), 900);
    assert_int_equal(type_q("TEXT/Html;Q=0.5", "text/html"), 500);
    assert_int_equal(type_q("text/html", "image/png"), 0);
    assert_int_equal(type_q(" text/html ; q=0.25 , a/b", "text/html"), 250);
}

static void negotiate_media_type_parameters(void **state)
{
    (void)state;
    assert_int_equal(type_q("text/html;level=1", "text/html"), 0);
    assert_int_equal(type_q("text/html;level=1;q=0.3, text/html;q=0.1", "text/html; LEVEL=1"), 300);
    assert_int_equal(type_q("text/html;level=\"1\"", "text/html;level=1"), 1000);
    assert_int_equal(type_q("text/html;a=1;b=2;q=0.3, text/html;a=1", "text/html;b=2;a=1"), 300);
    assert_int_equal(type_q("text/html;a=1;b=2", "text/html;a=1"), 0);
    /* parameters after q are not media type parameters */
    assert_int_equal(type_q("text/html;q=0.4;level=1", "text/html"), 400);
    assert_int_equal(type_q("text/html;a=\"x;q=0.1,y\";q=0.9", "text/html;a=\"x;q=0.1,y\""), 900);
    assert_int_equal(type_q("text/html;;q=0.9", "text/html"), 900);
    assert_int_equal(type_q("text/html;", "text/html"), 1000);
    assert_int_equal(type_q("text/html;a=\"\\\"", "text/html"), 0); /* the quoted string is not terminated */
}

static void negotiate_types_absent_and_malformed(void **state)
{
    (void)state;
    assert_int_equal(type_q(NULL, "text/html"), 1000);
    assert_int_equal(type_q("", "text/html"), 1000);
    assert_int_equal(type_q(" , ,", "text/html"), 1000);
    static const char *const zero[] = {"*",
                                       "text",
                                       "/",
                                       "/html",
                                       "text/",
                                       "*/html",
                                       "text/html;q=2",
                                       "text/html;q=x",
                                       "text/html;q=",
                                       "text/html;q=0.0001",
                                       "text/html;q=-1",
                                       "text/html;q=0.5 x",
                                       "text/htmlx",
                                       "tex/html",
                                       "**/*",
                                       "*/*x"};
    for (size_t i = 0; i < MK_LEN(zero); i++)
        if (type_q(zero[i], "text/html") != 0)
            fail_msg("\"%s\" accepts text/html", zero[i]);
    assert_int_equal(type_q("text/html", ""), 0);
    assert_int_equal(type_q("text/*", "text"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(negotiate_codings_have_weights),
        cmocka_unit_test(negotiate_identity_and_wildcard),
        cmocka_unit_test(negotiate_absent_and_empty_header),
        cmocka_unit_test(negotiate_legacy_names_and_several_lines),
        cmocka_unit_test(negotiate_weights_are_parsed),
        cmocka_unit_test(negotiate_rfc_example),
        cmocka_unit_test(negotiate_most_specific_range_applies),
        cmocka_unit_test(negotiate_media_type_parameters),
        cmocka_unit_test(negotiate_types_absent_and_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
