/* SPDX-License-Identifier: Apache-2.0 */
/* A failed allocation while parsing a head results in 503 and no other error. */
#include "unit/http2/h2_head_case.h"
#include "unit/oom.h"

static bool read_it(void)
{
    struct mk_arena arena;
    struct mk_h2_head h;
    mk_arena_init(&arena, NULL);
    int answer = h2head_read(&h, &arena,
                             ":method|POST\n:scheme|http\n:path|/x\n:authority|a\n"
                             "content-length|3\ncookie|a\ncookie|b\ncookie|c\nx-other|1\n",
                             false);
    assert_true(answer == 0 || answer == 503);
    mk_arena_fini(&arena);
    return answer == 0;
}

static void h2_head_oom_gets_503(void **state)
{
    (void)state;
    oom_at_each_allocation(read_it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(h2_head_oom_gets_503),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
