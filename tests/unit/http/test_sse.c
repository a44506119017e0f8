/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <monkey/sse.h>

#include "unit/test.h"

static void expect(const struct mk_sse_event *e, const char *text)
{
    char buffer[256];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    mk_buf_add(&out, MK_STR("<"));
    assert_int_equal(mk_sse_write(&out, e), 0);
    assert_str(mk_str_skip(mk_buf_str(&out), 1), text);
}

static void sse_event_fields_are_in_order(void **state)
{
    (void)state;
    expect(&(struct mk_sse_event){.data = MK_STR("x")}, "data: x\n\n");
    expect(&(struct mk_sse_event){MK_STR("news"), MK_STR("7"), MK_STR("x"), 1500},
           "event: news\nid: 7\nretry: 1500\ndata: x\n\n");
    expect(&(struct mk_sse_event){.id = MK_STR(""), .data = MK_STR("")}, "id: \ndata: \n\n");
    expect(&(struct mk_sse_event){.retry_ms = 5}, "retry: 5\n\n");
}

static void sse_each_data_line_is_a_field(void **state)
{
    (void)state;
    expect(&(struct mk_sse_event){.data = MK_STR("a\nb\r\nc\rd")}, "data: a\ndata: b\ndata: c\ndata: d\n\n");
    expect(&(struct mk_sse_event){.data = MK_STR("a\n")}, "data: a\ndata: \n\n");
    expect(&(struct mk_sse_event){.data = MK_STR("\n\revent: x")}, "data: \ndata: \ndata: event: x\n\n");
}

static void sse_empty_event_is_a_comment(void **state)
{
    (void)state;
    expect(&(struct mk_sse_event){.retry_ms = 0}, ":\n\n");
}

static void sse_rejects_line_breaks(void **state)
{
    static const mk_str bad[] = {MK_STR_INIT("a\nb"), MK_STR_INIT("a\r"), MK_STR_INIT("\n")};
    char buffer[64];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    (void)state;
    for (size_t i = 0; i < MK_LEN(bad); i++) {
        assert_int_equal(mk_sse_write(&out, &(struct mk_sse_event){.name = bad[i]}), -EINVAL);
        assert_int_equal(mk_sse_write(&out, &(struct mk_sse_event){.id = bad[i]}), -EINVAL);
    }
    assert_int_equal(mk_sse_write(&out, &(struct mk_sse_event){.id = MK_STR("a\0b")}), -EINVAL);
    assert_int_equal(out.len, 0);
}

static void sse_overflow_writes_nothing(void **state)
{
    char buffer[16];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    (void)state;
    mk_buf_add(&out, MK_STR("before"));
    assert_int_equal(mk_sse_write(&out, &(struct mk_sse_event){.data = MK_STR("0123456789")}), -ENOMEM);
    assert_str(mk_buf_str(&out), "before");
    assert_int_equal(mk_sse_write(&out, &(struct mk_sse_event){.data = MK_STR("0")}), 0);
}

static void sse_failed_buffer_stays_failed(void **state)
{
    char buffer[16];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    (void)state;
    mk_buf_add(&out, MK_STR("0123456789abcdef!"));
    assert_int_equal(mk_sse_write(&out, &(struct mk_sse_event){.data = MK_STR("0")}), -ENOMEM);
    assert_true(out.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sse_event_fields_are_in_order), cmocka_unit_test(sse_each_data_line_is_a_field),
        cmocka_unit_test(sse_empty_event_is_a_comment),  cmocka_unit_test(sse_rejects_line_breaks),
        cmocka_unit_test(sse_overflow_writes_nothing),   cmocka_unit_test(sse_failed_buffer_stays_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
