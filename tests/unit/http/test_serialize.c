/* SPDX-License-Identifier: Apache-2.0 */
#include "http/serialize.h"

#include "unit/test.h"

static void serialize_complete_head(void **state)
{
    (void)state;
    struct mk_buf out = mk_buf_growing(4096);
    mk_serialize_status_line(&out, 404);
    mk_serialize_header(&out, MK_STR("Content-Type"), MK_STR("text/plain"));
    mk_serialize_header_num(&out, MK_STR("Content-Length"), UINT64_MAX);
    mk_serialize_header(&out, MK_STR("X-Empty"), MK_STR_NULL);
    mk_serialize_head_end(&out);
    assert_false(out.failed);
    assert_str(mk_buf_str(&out), "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n"
                                 "Content-Length: 18446744073709551615\r\nX-Empty: \r\n\r\n");
    mk_buf_free(&out);
}

static void serialize_status_without_reason(void **state)
{
    (void)state;
    char buffer[64];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    mk_serialize_status_line(&out, 299);
    assert_str(mk_buf_str(&out), "HTTP/1.1 299 \r\n");
}

static void serialize_last_chunk_is_empty(void **state)
{
    (void)state;
    char buffer[64];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    mk_serialize_last_chunk(&out);
    assert_str(mk_buf_str(&out), "0\r\n\r\n");
}

static void serialize_overflow_writes_nothing(void **state)
{
    (void)state;
    char buffer[10];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    mk_serialize_header(&out, MK_STR("ab"), MK_STR("cdef"));
    assert_false(out.failed);
    mk_buf_clear(&out);
    mk_serialize_header(&out, MK_STR("ab"), MK_STR("cdefg"));
    assert_true(out.failed);
    assert_int_equal(out.len, 0);
    mk_serialize_head_end(&out);
    assert_int_equal(out.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serialize_complete_head),
        cmocka_unit_test(serialize_status_without_reason),
        cmocka_unit_test(serialize_last_chunk_is_empty),
        cmocka_unit_test(serialize_overflow_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
