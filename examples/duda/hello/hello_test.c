/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of hello.c: run them with `monkey test`. */
#include <duda/test.h>

DUDA_TEST(greets)
{
    duda_expect_text(t, duda_test_get(t, "/").body, "hello world\n");
    duda_expect_text(t, duda_test_get(t, "/?name=you").body, "hello you\n");
}

DUDA_TEST(computes)
{
    duda_expect_text(t, duda_test_get(t, "/square/-7").body, "49\n");
    duda_expect_status(t, duda_test_get(t, "/square/9999999"), 400);
    duda_expect_status(t, duda_test_get(t, "/square/x"), 404);
}
