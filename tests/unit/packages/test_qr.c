/* SPDX-License-Identifier: Apache-2.0 */
#include <duda/qr.h>
#include <errno.h>

#include "unit/test.h"

static char buffer[1 << 18], text[4000];

static int draw(size_t len, enum duda_qr_level level, unsigned size)
{
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    int e = duda_qr_svg(&out, mk_str_of(text, len), level, size);
    assert_false(out.failed);
    return e;
}

static void qr_draws_code(void **state)
{
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    (void)state;
    assert_int_equal(duda_qr_svg(&out, MK_STR("https://example.org/"), DUDA_QR_MEDIUM, 200), 0);
    assert_contains(mk_buf_str(&out), "width=\"200\" height=\"200\" viewBox=\"0 0 33 33\"");
    assert_contains(mk_buf_str(&out), "d=\"M4 4h7v1h-7z"); /* the first finder pattern */
}

static void qr_limits_are_enforced(void **state)
{
    (void)state;
    memset(text, 0xfe, sizeof text);
    assert_int_equal(draw(0, DUDA_QR_LOW, 100), -EINVAL);
    assert_int_equal(draw(1, DUDA_QR_LOW, 0), -EINVAL);
    assert_int_equal(draw(1, DUDA_QR_LOW, 10001), -EINVAL);
    assert_int_equal(draw(1, (enum duda_qr_level)7, 100), -EINVAL);
    assert_int_equal(draw(2953, DUDA_QR_LOW, 100), 0);
    assert_int_equal(draw(2954, DUDA_QR_LOW, 100), -EMSGSIZE);
    assert_int_equal(draw(1273, DUDA_QR_HIGH, 100), 0);
    assert_int_equal(draw(1274, DUDA_QR_HIGH, 100), -EMSGSIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(qr_draws_code),
        cmocka_unit_test(qr_limits_are_enforced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
