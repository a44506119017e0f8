/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <monkey/sse.h>

#include "unit/test.h"

static void expect(const struct mk_sse_event *e, const char *text)
{
    char room[256];
    struct mk_buf out = mk_buf_fixed(room, sizeof room);
    mk_buf_add(&out, MK_STR("<"));
    assert_int_equal(mk_sse_write(&out, e), 0);
    assert_str(mk_str_skip(mk_buf_str(&out), 1), text);
}

static void events_have_their_fields_in_order(void **state)
{
    (void)state;
    expect(&(struct mk_sse_event){.data = MK_STR("x")}, "data: x\n\n");
    expect(&(struct mk_sse_event){MK_STR("news"), MK_STR("7"), MK_STR("x"), 1500},
           "event: news\nid: 7\nretry: 1500\ndata: x\n\n");
    expect(&(struct mk_sse_event){.id = MK_STR(""), .data = MK_STR("")}, "id: \ndata: \n\n");
    expect(&(struct mk_sse_event){.retry_ms = 5}, "retry: 5\n\n");
}

static void each_line_of_data_is_a_field(void **state)
{
    (void)state;
    expect(&(struct mk_sse_event){.data = MK_STR("a\nb\r\nc\rd")}, "data: a\ndata: b\ndata: c\ndata: d\n\n");
    expect(&(struct mk_sse_event){.data = MK_STR("a\n")}, "data: a\ndata: \n\n");
    expect(&(struct mk_sse_event){.data = MK_STR("\n\revent: x")}, "data: \ndata: \ndata: event: x\n\n");
}

static void nothing_is_a_comment(void **state)
{
    (void)state;
    expect(&(struct mk_sse_event){.retry_ms = 0}, ":\n\n");
}

static void line_ends_cannot_be_injected(void **state)
{
    static const mk_str bad[] = {MK_STR_INIT("a\nb"), MK_STR_INIT("a\r"), MK_STR_INIT("\n")};
    char room[64];
    struct mk_buf out = mk_buf_fixed(room, sizeof room);
    (void)state;
    for (size_t i = 0; i < MK_LEN(bad); i++) {
        assert_int_equal(mk_sse_write(&out, &(struct mk_sse_event){.name = bad[i]}), -EINVAL);
        assert_int_equal(mk_sse_write(&out, &(struct mk_sse_event){.id = bad[i]}), -EINVAL);
    }
    assert_int_equal(mk_sse_write(&out, &(struct mk_sse_event){.id = MK_STR("a\0b")}), -EINVAL);
    assert_int_equal(out.len, 0);
}

static void what_does_not_fit_leaves_nothing(void **state)
{
    char room[16];
    struct mk_buf out = mk_buf_fixed(room, sizeof room);
    (void)state;
    mk_buf_add(&out, MK_STR("before"));
    assert_int_equal(mk_sse_write(&out, &(struct mk_sse_event){.data = MK_STR("0123456789")}), -ENOMEM);
    assert_str(mk_buf_str(&out), "before");
    assert_int_equal(mk_sse_write(&out, &(struct mk_sse_event){.data = MK_STR("0")}), 0);
}

static void buffer_that_has_overflowed_stays_so(void **state)
{
    char room[16];
    struct mk_buf out = mk_buf_fixed(room, sizeof room);
    (void)state;
    mk_buf_add(&out, MK_STR("0123456789abcdef!"));
    assert_int_equal(mk_sse_write(&out, &(struct mk_sse_event){.data = MK_STR("0")}), -ENOMEM);
    assert_true(out.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_have_their_fields_in_order),
        cmocka_unit_test(each_line_of_data_is_a_field),
        cmocka_unit_test(nothing_is_a_comment),
        cmocka_unit_test(line_ends_cannot_be_injected),
        cmocka_unit_test(what_does_not_fit_leaves_nothing),
        cmocka_unit_test(buffer_that_has_overflowed_stays_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
