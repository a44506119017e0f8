/* SPDX-License-Identifier: Apache-2.0 */
#include "http/header.h"

#include "unit/test.h"

static void trailer_allowed_names(void **state)
{
    (void)state;
    static const char *const good[] = {"grpc-status", "Grpc-Message", "Digest", "Server-Timing", "ETag",
                                       "x",           "Link"};
    static const char *const bad[] = {"Content-Length",
                                      "transfer-encoding",
                                      "HOST",
                                      "Connection",
                                      "TE",
                                      "Trailer",
                                      "Authorization",
                                      "Set-Cookie",
                                      "Cookie",
                                      "Content-Type",
                                      "Range",
                                      "If-Match",
                                      "Cache-Control",
                                      "Age",
                                      "Expires",
                                      "Date",
                                      "Location",
                                      "Retry-After",
                                      "Vary",
                                      "Warning",
                                      "Upgrade",
                                      "Keep-Alive",
                                      "Proxy-Connection",
                                      "X-Forwarded-For",
                                      "",
                                      ":status",
                                      "a b",
                                      "a\r\n"};
    for (size_t i = 0; i < MK_LEN(good); i++)
        if (!mk_trailer_is_allowed(mk_str_from_c(good[i])))
            fail_msg("%s", good[i]);
    for (size_t i = 0; i < MK_LEN(bad); i++)
        if (mk_trailer_is_allowed(mk_str_from_c(bad[i])))
            fail_msg("%s", bad[i]);
}

static void trailer_lines_are_parsed(void **state)
{
    (void)state;
    mk_str section = MK_STR("a: b\r\nC:\r\nd:  e f\t\r\ng:h:i\r\n"), name, value;
    static const char *const expected[][2] = {{"a", "b"}, {"C", ""}, {"d", "e f"}, {"g", "h:i"}};
    for (size_t i = 0; i < MK_LEN(expected); i++) {
        assert_true(mk_trailer_next(&section, &name, &value));
        assert_str(name, expected[i][0]);
        assert_str(value, expected[i][1]);
    }
    assert_false(mk_trailer_next(&section, &name, &value));
    assert_false(mk_trailer_next(&section, &name, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trailer_allowed_names),
        cmocka_unit_test(trailer_lines_are_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
