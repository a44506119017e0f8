/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_request.h"
#include "unit/test.h"

static void priority_parses_urgency_and_incremental(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned urgency;
        bool incremental;
    } cases[] = {
        {"", 3, false},
        {"u=0", 0, false},
        {"u=7", 7, false},
        {"i", 3, true},
        {"i=?1", 3, true},
        {"i=?0", 3, false},
        {"u=5, i", 5, true},
        {"i,u=1", 1, true},
        /* the last value counts (RFC 9651, section 4.2.2) */
        {" u=2 ,\ti ", 2, true},
        {"u=1;x=2, i;y", 1, true},
        {"u=1, u=6", 6, false},
        {"i, i=?0", 3, false},
        {"a=1, u=2, b", 2, false},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct mk_h2_priority p = mk_h2_priority_parse(mk_str_from_c(cases[i].text));
        if (p.urgency != cases[i].urgency || p.incremental != cases[i].incremental)
            fail_msg("\"%s\" is u=%d, i=%d", cases[i].text, p.urgency, p.incremental);
    }
}

static void priority_malformed_uses_defaults(void **state)
{
    (void)state;
    static const char *const cases[] = {"u=8",   "u=-1",    "u=9",   "u=",   "u=10", "u=1.0", "U=1",
                                        "u = 1", "i=1",     "i=?",   "=",    ",",    ";",     ",,,,",
                                        "u=?1",  "\"u=1\"", "u=1 2", "u;=1", "ui",   "I"};
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct mk_h2_priority p = mk_h2_priority_parse(mk_str_from_c(cases[i]));
        if (p.urgency != MK_URGENCY_USUAL || p.incremental)
            fail_msg("\"%s\" is u=%d, i=%d", cases[i], p.urgency, p.incremental);
    }
}

static void priority_parser_survives_random_input(void **state)
{
    (void)state;
    char text[16];
    for (unsigned seed = 0; seed < 200000; seed++) {
        unsigned r = seed * 2654435761u;
        size_t len = r % sizeof text;
        for (size_t i = 0; i < len; i++)
            text[i] = "ui=?0178,; \tx\"\0"[(r = r * 1103515245u + 12345u) >> 16 & 15];
        struct mk_h2_priority p = mk_h2_priority_parse(mk_str_of(text, len));
        assert_true(p.urgency < MK_URGENCIES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(priority_parses_urgency_and_incremental),
        cmocka_unit_test(priority_malformed_uses_defaults),
        cmocka_unit_test(priority_parser_survives_random_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
