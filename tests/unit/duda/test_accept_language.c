/* SPDX-License-Identifier: Apache-2.0 */
/* Accept-Language: the choice among en, de-CH, de and fr. */
#include <duda/body.h>

#include "unit/test.h"

static void language_follows_accept_language(void **state)
{
    (void)state;
    static const char *const languages[] = {"en", "de-CH", "de", "fr", NULL};
    static const struct {
        const char *field;
        int choice;
    } cases[] = {
        {"", -1},
        {"fr", 3},
        {"FR-ca", 3},
        {"de", 2},
        {"de-CH", 1},
        {"de-AT", 2},
        {"de-CH-1996", 1},
        {"it, fr;q=0.5", 3},
        {"en;q=0.4, de;q=0.8", 2},
        {"de-AT, fr", 2},
        {"en;q=0.4, de-AT;q=0.8", 2},
        {"fr;q=0, *;q=0.1", 0},
        {"*", 0},
        {"en;q=0", -1},
        {"e, english", -1},
        {"fr;q=2, en;q=0.1", 0},
        {"fr;q=0.1234, en;q=0.1", 0},
        {"fr;x, en;q=0.001", 0},
        {"fr;q=1.000, en", 3},
        {",,;;,fr", 3},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++)
        if (duda_negotiate_language(mk_str_from_c(cases[i].field), languages) != cases[i].choice)
            fail_msg("%s: %d", cases[i].field,
                     duda_negotiate_language(mk_str_from_c(cases[i].field), languages));
    assert_int_equal(duda_negotiate_language(MK_STR_NULL, languages), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(language_follows_accept_language)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
