/* SPDX-License-Identifier: Apache-2.0 */
#include <duda/mime.h>

#include "unit/test.h"

static struct duda_mime read_type(const char *text)
{
    struct duda_mime mime;
    assert_true(duda_mime_read(mk_str_from_c(text), &mime));
    return mime;
}

static void mime_type_is_parsed(void **state)
{
    struct duda_mime mime = read_type(" Text/HTML ; charset=utf-8;; boundary=\"a;b\" ;");
    (void)state;
    assert_str(mime.type, "Text");
    assert_str(mime.subtype, "HTML");
    mime = read_type("application/vnd.api+json");
    assert_str(mime.subtype, "vnd.api+json");
    assert_str(mime.parameters, "");
}

static void mime_rejects_malformed_types(void **state)
{
    static const char *const wrong[] = {
        "",           "text",          "text/",       "/html",    "te xt/html",
        "a/b/c",      "a/b; c",        "a/b; c=",     "a/b; =d",  "a/b; c=\"d",
        "a/b; c=d e", "a/b; c=\"d\"e", "a/b; c=\"\\", "a/b, c/d", "a/b; c=\"\n\"",
        "a/b; c =d",  "a/b\r\nX: y"};
    struct duda_mime mime;
    (void)state;
    for (size_t i = 0; i < MK_LEN(wrong); i++)
        assert_false(duda_mime_read(mk_str_from_c(wrong[i]), &mime));
    assert_false(duda_mime_read(MK_STR_NULL, &mime));
}

static void mime_types_are_compared(void **state)
{
    struct duda_mime mime = read_type("application/Problem+JSON; x=y");
    (void)state;
    assert_true(duda_mime_is(&mime, MK_STR("application/problem+json")));
    assert_true(duda_mime_is(&mime, MK_STR("application/*")));
    assert_true(duda_mime_is(&mime, MK_STR("*/*+json")));
    assert_true(duda_mime_is(&mime, MK_STR("*/*")));
    assert_false(duda_mime_is(&mime, MK_STR("application/json")));
    assert_false(duda_mime_is(&mime, MK_STR("text/*")));
    assert_false(duda_mime_is(&mime, MK_STR("application")));
    assert_false(duda_mime_is(&mime, MK_STR("*/*+xml-and-much-more-than-the-type-has")));
}

static void mime_parameters_are_found(void **state)
{
    char space[16];
    struct mk_buf buffer = mk_buf_fixed(space, sizeof space);
    struct duda_mime mime =
        read_type("a/b; skipped=\"long text\"; Name=\"q\\\"\\\\;\"; charset=UTF-8; name=late");
    (void)state;
    assert_str(duda_mime_parameter(&mime, MK_STR("charset"), &buffer), "UTF-8");
    assert_str(duda_mime_parameter(&mime, MK_STR("NAME"), &buffer), "q\"\\;");
    assert_null(duda_mime_parameter(&mime, MK_STR("none"), &buffer).p);
    mime = read_type("a/b; x=\"\"");
    assert_str(duda_mime_parameter(&mime, MK_STR("x"), &buffer), "");
    mime = read_type("a/b; x=\"longer than the buffer\"");
    assert_null(duda_mime_parameter(&mime, MK_STR("x"), &buffer).p);
    assert_true(buffer.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mime_type_is_parsed),
        cmocka_unit_test(mime_rejects_malformed_types),
        cmocka_unit_test(mime_types_are_compared),
        cmocka_unit_test(mime_parameters_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
