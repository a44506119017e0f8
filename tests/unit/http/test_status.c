/* SPDX-License-Identifier: Apache-2.0 */
#include "http/status.h"

#include "base/num.h"
#include "unit/test.h"

static void status_text_of_known_codes(void **state)
{
    (void)state;
    assert_str(mk_status_text(200), "200 OK");
    assert_str(mk_status_text(404), "404 Not Found");
    assert_str(mk_status_text(431), "431 Request Header Fields Too Large");
    assert_str(mk_status_text(226), "226 IM Used");
    assert_str(mk_status_text(451), "451 Unavailable For Legal Reasons");
    assert_str(mk_status_text(511), "511 Network Authentication Required");
}

static void status_text_begins_with_code(void **state)
{
    (void)state;
    unsigned n = 0;
    for (unsigned status = 0; status < 1000; status++) {
        mk_str line = mk_status_text(status);
        if (line.len == 0)
            continue;
        uint64_t code;
        n++;
        assert_true(mk_num_parse(mk_str_first(line, 3), &code));
        assert_int_equal(code, status);
        assert_int_equal(line.p[3], ' ');
        assert_true(line.len > 4);
    }
    assert_int_equal(n, 62);
}

static void status_text_of_unregistered_codes_is_empty(void **state)
{
    (void)state;
    static const unsigned codes[] = {0, 99, 199, 209, 299, 306, 418, 430, 499, 509, 552, 600, 999, 70000};
    for (size_t i = 0; i < MK_LEN(codes); i++)
        assert_str(mk_status_text(codes[i]), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_text_of_known_codes),
        cmocka_unit_test(status_text_begins_with_code),
        cmocka_unit_test(status_text_of_unregistered_codes_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
