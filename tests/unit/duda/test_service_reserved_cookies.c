/* SPDX-License-Identifier: Apache-2.0 */
/* Cookie names that Duda reserves, and that services must not use. */
#include "service/reserved_cookies.h"

#include <errno.h>
#include <stdio.h>

#include "service/suspend.h"
#include "unit/test.h"

static const mk_str scopes[] = {MK_STR_INIT("forum"), MK_STR_INIT("my-shop")};
static struct duda_worker_ctx worker_ctx = {.scopes = scopes, .n_scopes = MK_LEN(scopes)};
static char request; /* the test uses only its address */
static const char *scheme;
static char logged[256];

mk_str mk_request_scheme(const struct mk_request *r)
{
    (void)r;
    return mk_str_from_c(scheme);
}

mk_str duda_scope(struct duda_ctx *d)
{
    (void)d;
    return scopes[0];
}

void duda_log_handler(struct duda_ctx *d, enum mk_log_level level, const char *fmt, ...)
{
    va_list args;
    (void)d, (void)level;
    va_start(args, fmt);
    vsnprintf(logged, sizeof logged, fmt, args);
    va_end(args);
}

static struct duda_ctx a_handler(void)
{
    return (struct duda_ctx){.worker_ctx = &worker_ctx, .request = (struct mk_request *)(void *)&request};
}

static void reserved_cookies_name_depends_on_service_and_scheme(void **state)
{
    struct duda_cookie_name buffer;
    struct duda_ctx d = a_handler();
    (void)state;
    scheme = "http";
    assert_string_equal(duda_reserved_cookie_name(&d, DUDA_COOKIE_SESSION, &buffer), "forum-session");
    assert_string_equal(duda_reserved_cookie_name(&d, DUDA_COOKIE_CSRF, &buffer), "forum-token");
    scheme = "https";
    assert_string_equal(duda_reserved_cookie_name(&d, DUDA_COOKIE_SESSION, &buffer), "__Host-forum-session");
    assert_string_equal(duda_reserved_cookie_name(&d, DUDA_COOKIE_CSRF, &buffer), "__Host-forum-token");
}

static void reserved_cookies_are_rejected(void **state)
{
    static const char *const own[] = {"forum-session",        "forum-token",
                                      "__Host-forum-session", "__Secure-forum-session",
                                      "__host-FORUM-Session", "__Secure-__Host-forum-token",
                                      "my-shop-session",      "__Host-my-shop-token"};
    struct duda_ctx d = a_handler();
    (void)state;
    for (size_t i = 0; i < MK_LEN(own); i++) {
        *logged = 0;
        assert_int_equal(duda_reserved_cookie_check(&d, mk_str_from_c(own[i])), -EPERM);
        assert_non_null(strstr(logged, own[i]));
    }
}

static void reserved_cookies_other_names_are_allowed(void **state)
{
    static const char *const others[] = {"session",
                                         "token",
                                         "-session",
                                         "forum",
                                         "forum-",
                                         "forum-sessions",
                                         "xforum-session",
                                         "shop-session",
                                         "access-token",
                                         "__Host-",
                                         "__Host-session",
                                         "forum_session",
                                         ""};
    struct duda_ctx d = a_handler();
    (void)state;
    *logged = 0;
    for (size_t i = 0; i < MK_LEN(others); i++)
        assert_int_equal(duda_reserved_cookie_check(&d, mk_str_from_c(others[i])), 0);
    assert_string_equal(logged, "");
}

static void reserved_cookies_header_is_parsed_as_by_browsers(void **state)
{
    static const char *const bad[] = {"forum-session=1",        " forum-session = 1; Path=/",
                                      "forum-session",          "=forum-session=1",
                                      " = forum-session=1",     "==forum-token=1",
                                      "forum-token=; Max-Age=0"};
    static const char *const good[] = {"a=forum-session",   "a=1; forum-session=1", "", "=", ";",
                                       "=a=forum-session=1"};
    struct duda_ctx d = a_handler();
    (void)state;
    for (size_t i = 0; i < MK_LEN(bad); i++)
        assert_int_equal(duda_reserved_cookie_check_header(&d, mk_str_from_c(bad[i])), -EPERM);
    for (size_t i = 0; i < MK_LEN(good); i++)
        assert_int_equal(duda_reserved_cookie_check_header(&d, mk_str_from_c(good[i])), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reserved_cookies_name_depends_on_service_and_scheme),
        cmocka_unit_test(reserved_cookies_are_rejected),
        cmocka_unit_test(reserved_cookies_other_names_are_allowed),
        cmocka_unit_test(reserved_cookies_header_is_parsed_as_by_browsers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
