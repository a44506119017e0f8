/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/common_headers.h"

#include "unit/test.h"

static void common_headers_have_server_and_date(void **state)
{
    (void)state;
    struct mk_common_headers s;
    mk_common_headers_init(&s, MK_STR("Monkey/2.0"));
    assert_str(mk_common_headers_at(&s, 784111777),
               "Server: Monkey/2.0\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    assert_str(mk_common_headers_at(&s, 0), "Server: Monkey/2.0\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n");
    assert_str(mk_common_headers_at(&s, 784111778),
               "Server: Monkey/2.0\r\nDate: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
}

static void common_headers_can_each_be_left_out(void **state)
{
    (void)state;
    struct mk_common_headers s;
    mk_common_headers_init(&s, MK_STR("Monkey"));
    mk_str both = mk_common_headers_at(&s, 784111777);
    assert_str(mk_common_headers_without_own(both, s.server_len, MK_RESPONSE_OWN_DATE), "Server: Monkey\r\n");
    assert_str(mk_common_headers_without_own(both, s.server_len, MK_RESPONSE_OWN_SERVER),
               "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    assert_str(
        mk_common_headers_without_own(both, s.server_len, MK_RESPONSE_OWN_SERVER | MK_RESPONSE_OWN_DATE), "");
    assert_str(mk_common_headers_without_own(both, s.server_len, MK_RESPONSE_OWN_TRAILER),
               "Server: Monkey\r\n"
               "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
}

static void common_headers_date_is_written_once_a_second(void **state)
{
    (void)state;
    struct mk_common_headers s;
    mk_common_headers_init(&s, MK_STR("Monkey"));
    mk_str first = mk_common_headers_at(&s, 784111777);
    s.text[s.date_at] = 'X';
    assert_int_equal(mk_common_headers_at(&s, 784111777).p[s.date_at], 'X');
    assert_int_equal(mk_common_headers_at(&s, 784111778).p[s.date_at], 'S');
    assert_ptr_equal(mk_common_headers_at(&s, 784111778).p, first.p);
}

static void common_headers_end_with_empty_line(void **state)
{
    (void)state;
    struct mk_common_headers s;
    mk_common_headers_init(&s, MK_STR("Monkey"));
    mk_str stamp = mk_common_headers_at(&s, 1);
    assert_true(mk_str_ends(mk_str_of(stamp.p, stamp.len + 2), MK_STR(" GMT\r\n\r\n")));
}

static void common_headers_long_server_name_is_truncated(void **state)
{
    (void)state;
    static char name[MK_COMMON_HEADERS_MAX * 2];
    memset(name, 'n', sizeof name);
    for (size_t len = 0; len <= sizeof name; len++) {
        struct mk_common_headers s;
        mk_common_headers_init(&s, mk_str_of(name, len));
        mk_str stamp = mk_common_headers_at(&s, 784111777);
        assert_true(stamp.len + 2 <= sizeof s.text);
        assert_true(mk_str_starts(stamp, MK_STR("Server: ")));
        assert_true(mk_str_ends(stamp, MK_STR("\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n")));
        if (len < 50)
            assert_int_equal(stamp.len, 8 + len + 8 + 29 + 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(common_headers_have_server_and_date),
        cmocka_unit_test(common_headers_can_each_be_left_out),
        cmocka_unit_test(common_headers_date_is_written_once_a_second),
        cmocka_unit_test(common_headers_end_with_empty_line),
        cmocka_unit_test(common_headers_long_server_name_is_truncated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
