/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/certificate_list.h"

#include <stdlib.h>

#include "setup/shared_state.h"
#include "unit/test.h"

static struct mk_certificate_list *new_list(struct mk_shared_state *s)
{
    struct mk_certificate_list *list =
        mk_shared_state_get_memory(s, MK_STR("list"), 2 * (MK_CERTIFICATE_LIST_MAX + 64));
    assert_non_null(list);
    return list;
}

static void publish(struct mk_certificate_list *list, mk_str text)
{
    struct mk_buf buf = mk_certificate_list_begin(list);
    mk_buf_add(&buf, text);
    mk_certificate_list_publish(list, buf.len);
}

static void assert_list(const struct mk_certificate_list *list, const char *expected)
{
    struct mk_buf out = mk_buf_growing(2 * MK_CERTIFICATE_LIST_MAX);
    mk_buf_add_char(&out, '=');
    assert_int_equal(mk_certificate_list_read(list, &out), expected != NULL);
    assert_str(mk_str_skip(mk_buf_str(&out), 1), expected ? expected : "");
    mk_buf_free(&out);
}

static void certificate_list_is_absent_until_it_is_published(void **state)
{
    (void)state;
    struct mk_shared_state s = {0};
    struct mk_certificate_list *list = new_list(&s);
    assert_list(NULL, NULL);
    assert_list(list, NULL);
    publish(list, MK_STR("[]"));
    assert_list(list, "[]");
    mk_shared_state_fini(&s);
}

static void certificate_list_of_a_writer_that_died_is_not_read(void **state)
{
    (void)state;
    struct mk_shared_state s = {0};
    struct mk_certificate_list *list = new_list(&s);
    publish(list, MK_STR("[1]"));
    struct mk_buf lost = mk_certificate_list_begin(list);
    mk_buf_add(&lost, MK_STR("[half"));
    assert_list(list, "[1]");
    publish(list, MK_STR("[2]"));
    assert_list(list, "[2]");
    publish(list, MK_STR(""));
    assert_list(list, "");
    mk_shared_state_fini(&s);
}

/* A compromised worker can write to the memory. */
static void certificate_list_length_is_limited(void **state)
{
    (void)state;
    struct mk_shared_state s = {0};
    struct mk_certificate_list *list = new_list(&s);
    struct mk_buf out = mk_buf_growing(2 * MK_CERTIFICATE_LIST_MAX);
    mk_certificate_list_publish(list, UINT32_MAX);
    assert_true(mk_certificate_list_read(list, &out));
    assert_int_equal(out.len, MK_CERTIFICATE_LIST_MAX);
    mk_buf_free(&out);
    mk_shared_state_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(certificate_list_is_absent_until_it_is_published),
        cmocka_unit_test(certificate_list_of_a_writer_that_died_is_not_read),
        cmocka_unit_test(certificate_list_length_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
