/* SPDX-License-Identifier: Apache-2.0 */
/* Cookies have safe defaults; no value can inject attributes or header lines. */
#include <errno.h>
#include <monkey/cookie.h>

#include "unit/test.h"

static char buffer[8192];

static void expect(struct mk_cookie cookie, bool is_tls, const char *text)
{
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    assert_int_equal(mk_cookie_write(&out, &cookie, is_tls), text ? 0 : -EINVAL);
    assert_str(mk_buf_str(&out), text ? text : "");
}

static void cookie_defaults_are_safe(void **state)
{
    (void)state;
    expect((struct mk_cookie){.name = "a", .value = MK_STR("1")}, false,
           "a=1; Path=/; HttpOnly; SameSite=Lax");
    expect((struct mk_cookie){.name = "a", .value = MK_STR("1")}, true,
           "a=1; Path=/; Secure; HttpOnly; SameSite=Lax");
    expect((struct mk_cookie){.name = "a", .max_age = -1}, false,
           "a=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
    expect((struct mk_cookie){.name = "__Host-s", .value = MK_STR("x"), .max_age = 60}, true,
           "__Host-s=x; Path=/; Max-Age=60; Secure; HttpOnly; SameSite=Lax");
    expect((struct mk_cookie){.name = "a", .path = MK_STR("/x y"), .same_site = MK_SAME_SITE_STRICT}, false,
           NULL);
    expect((struct mk_cookie){.name = "a",
                              .path = MK_STR("/x"),
                              .domain = MK_STR("example.org"),
                              .same_site = MK_SAME_SITE_STRICT,
                              .script_readable = true,
                              .insecure = true},
           true, "a=; Path=/x; Domain=example.org; SameSite=Strict");
    expect((struct mk_cookie){.name = "a", .same_site = MK_SAME_SITE_NONE}, true,
           "a=; Path=/; Secure; HttpOnly; SameSite=None");
}

static void cookie_prefix_and_size_rules_are_enforced(void **state)
{
    (void)state;
    expect((struct mk_cookie){.name = "__Host-s"}, false, NULL);
    expect((struct mk_cookie){.name = "__host-s"}, false, NULL);
    expect((struct mk_cookie){.name = "__Host-s", .path = MK_STR("/x")}, true, NULL);
    expect((struct mk_cookie){.name = "__Host-s", .domain = MK_STR("example.org")}, true, NULL);
    expect((struct mk_cookie){.name = "__Secure-s", .insecure = true}, true, NULL);
    expect((struct mk_cookie){.name = "a", .same_site = MK_SAME_SITE_NONE}, false, NULL);
    static char longest[MK_COOKIE_MAX];
    memset(longest, 'x', sizeof longest);
    expect((struct mk_cookie){.name = "a", .value = mk_str_of(longest, sizeof longest)}, false, NULL);
}

/* With any byte in any part, the header line has exactly one `;` for each attribute, and does not end
 * early. */
static void cookie_rejects_injection(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        char text[] = {'/', 'a', (char)byte, 'b', '\0'};
        bool good = byte > ' ' && byte < 0x7f && !strchr("\",;\\", byte);
        for (int part = 0; part < 4; part++) {
            struct mk_cookie c = {.name = "n"};
            if (part == 0)
                c.name = text + 1;
            *(part == 1 ? &c.value : part == 2 ? &c.path : &c.domain) = mk_str_of(text, part == 0 ? 0 : 4);
            struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
            int e = mk_cookie_write(&out, &c, false);
            if (part == 1)
                assert_int_equal(e, good ? 0 : -EINVAL);
            size_t n = 0;
            for (size_t i = 0; i < out.len; i++) {
                n += out.p[i] == ';';
                assert_true(out.p[i] >= ' ' && out.p[i] < 0x7f);
            }
            assert_int_equal(n, e ? 0 : 3 + (part == 3));
        }
    }
}

static void cookie_is_found_in_request_header(void **state)
{
    (void)state;
    mk_str field = MK_STR(" a=1; b=\"2\";c ; =x;d=e=f; A=3; a=4;;");
    assert_str(mk_cookie_find(field, MK_STR("a")), "1");
    assert_str(mk_cookie_find(field, MK_STR("b")), "\"2\"");
    assert_str(mk_cookie_find(field, MK_STR("d")), "e=f");
    assert_str(mk_cookie_find(field, MK_STR("A")), "3");
    assert_null(mk_cookie_find(field, MK_STR("c")).p);
    assert_null(mk_cookie_find(field, MK_STR("")).p);
    assert_null(mk_cookie_find(MK_STR_NULL, MK_STR("a")).p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cookie_defaults_are_safe),
        cmocka_unit_test(cookie_prefix_and_size_rules_are_enforced),
        cmocka_unit_test(cookie_rejects_injection),
        cmocka_unit_test(cookie_is_found_in_request_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
