/* SPDX-License-Identifier: Apache-2.0 */
#include "http/target.h"

#include "unit/test.h"

static int parse(enum mk_method method, const char *text, struct mk_target *t)
{
    memset(t, 0x5a, sizeof *t);
    return mk_target_parse(method, mk_str_from_c(text), t);
}

static void target_origin_form(void **state)
{
    (void)state;
    struct mk_target t;
    assert_int_equal(parse(MK_METHOD_GET, "/a/%41?b=c?d", &t), 0);
    assert_int_equal(t.form, MK_TARGET_ORIGIN);
    assert_str(t.path, "/a/%41");
    assert_str(t.query, "b=c?d");
    assert_null(t.scheme.p);
    assert_null(t.authority.p);
    assert_null(t.host.p);
    assert_int_equal(t.port, MK_PORT_NONE);
}

static void target_empty_query_differs_from_absent(void **state)
{
    (void)state;
    struct mk_target t;
    assert_int_equal(parse(MK_METHOD_GET, "/?", &t), 0);
    assert_non_null(t.query.p);
    assert_int_equal(t.query.len, 0);
    assert_int_equal(parse(MK_METHOD_GET, "/", &t), 0);
    assert_null(t.query.p);
}

static void target_absolute_form(void **state)
{
    (void)state;
    struct mk_target t;
    assert_int_equal(parse(MK_METHOD_POST, "hTTps://Example.org:8443/a//b?c:/d", &t), 0);
    assert_int_equal(t.form, MK_TARGET_ABSOLUTE);
    assert_str(t.scheme, "hTTps");
    assert_str(t.authority, "Example.org:8443");
    assert_str(t.host, "Example.org");
    assert_int_equal(t.port, 8443);
    assert_str(t.path, "/a//b");
    assert_str(t.query, "c:/d");
    assert_int_equal(parse(MK_METHOD_OPTIONS, "http://a", &t), 0);
    assert_str(t.path, "/");
    assert_null(t.query.p);
    assert_int_equal(parse(MK_METHOD_UNKNOWN, "http://a?", &t), 0);
    assert_str(t.path, "/");
    assert_non_null(t.query.p);
}

static void target_authority_form(void **state)
{
    (void)state;
    struct mk_target t;
    assert_int_equal(parse(MK_METHOD_CONNECT, "[::1]:443", &t), 0);
    assert_int_equal(t.form, MK_TARGET_AUTHORITY);
    assert_str(t.authority, "[::1]:443");
    assert_str(t.host, "[::1]");
    assert_int_equal(t.port, 443);
    assert_null(t.path.p);
}

static void target_asterisk_form(void **state)
{
    (void)state;
    struct mk_target t;
    assert_int_equal(parse(MK_METHOD_OPTIONS, "*", &t), 0);
    assert_int_equal(t.form, MK_TARGET_ASTERISK);
    assert_str(t.path, "*");
}

static void target_rejects_invalid_forms(void **state)
{
    (void)state;
    static const struct {
        enum mk_method method;
        const char *text;
    } cases[] = {
        {MK_METHOD_GET, ""},           {MK_METHOD_GET, "*"},          {MK_METHOD_OPTIONS, "**"},
        {MK_METHOD_OPTIONS, "*?a"},    {MK_METHOD_GET, "a"},          {MK_METHOD_GET, "?a"},
        {MK_METHOD_GET, "a.org:80"},   {MK_METHOD_CONNECT, "a.org"},  {MK_METHOD_CONNECT, "a.org:"},
        {MK_METHOD_CONNECT, "/"},      {MK_METHOD_CONNECT, "a:80/"},  {MK_METHOD_CONNECT, "http://a:80"},
        {MK_METHOD_CONNECT, "u@a:80"}, {MK_METHOD_GET, "http:"},      {MK_METHOD_GET, "http:/"},
        {MK_METHOD_GET, "http://"},    {MK_METHOD_GET, "http:///"},   {MK_METHOD_GET, "http://?"},
        {MK_METHOD_GET, "http:/a"},    {MK_METHOD_GET, "://a"},       {MK_METHOD_GET, "httpx://a"},
        {MK_METHOD_GET, "ws://a"},     {MK_METHOD_GET, "http://u@a"}, {MK_METHOD_GET, "http://u:p@a/"},
        {MK_METHOD_GET, "http://a b"}, {MK_METHOD_GET, "/ "},         {MK_METHOD_GET, "/#a"},
        {MK_METHOD_GET, "/a\x7f"},     {MK_METHOD_GET, "/a\x80"},     {MK_METHOD_GET, "/a\x1f"},
    };
    struct mk_target t;
    for (size_t i = 0; i < MK_LEN(cases); i++)
        if (parse(cases[i].method, cases[i].text, &t) != 400)
            fail_msg("%s", cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(target_origin_form),   cmocka_unit_test(target_empty_query_differs_from_absent),
        cmocka_unit_test(target_absolute_form), cmocka_unit_test(target_authority_form),
        cmocka_unit_test(target_asterisk_form), cmocka_unit_test(target_rejects_invalid_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
