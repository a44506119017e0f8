/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sockaddr.h"

#include <unistd.h>

#include "unit/test.h"

static const mk_str any = MK_STR_INIT("0.0.0.0");

static mk_str print(const struct mk_sockaddr *a, char buffer[MK_SOCKADDR_TEXT_MAX])
{
    struct mk_buf out = mk_buf_fixed(buffer, MK_SOCKADDR_TEXT_MAX);
    mk_sockaddr_format(a, &out);
    assert_false(out.failed);
    return mk_buf_str(&out);
}

static struct mk_sockaddr parse(const char *text)
{
    struct mk_sockaddr a;
    if (mk_sockaddr_parse(mk_str_from_c(text), any, &a))
        fail_msg("%s is refused", text);
    return a;
}

static void sockaddr_is_parsed_and_printed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *printed;
        sa_family_t family;
        unsigned port;
    } cases[] = {
        {"80", "0.0.0.0:80", AF_INET, 80},
        {"0", "0.0.0.0:0", AF_INET, 0},
        {"65535", "0.0.0.0:65535", AF_INET, 65535},
        {"127.0.0.1:8080", "127.0.0.1:8080", AF_INET, 8080},
        {"*:81", "0.0.0.0:81", AF_INET, 81},
        {"[::1]:443", "[::1]:443", AF_INET6, 443},
        {"[::]:443", "[::]:443", AF_INET6, 443},
        {"[2001:DB8::0:1]:1", "[2001:db8::1]:1", AF_INET6, 1},
        {"unix:/run/monkey.sock", "unix:/run/monkey.sock", AF_UNIX, 0},
        {"unix:relative", "unix:relative", AF_UNIX, 0},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        char buffer[MK_SOCKADDR_TEXT_MAX];
        struct mk_sockaddr a = parse(cases[i].text);
        assert_str(print(&a, buffer), cases[i].printed);
        assert_int_equal(a.any.sa_family, cases[i].family);
        assert_int_equal(mk_sockaddr_port(&a), cases[i].port);
        struct mk_sockaddr again = parse(cases[i].printed);
        assert_true(mk_sockaddr_eq(&a, &again));
    }
}

static void sockaddr_rejects_malformed(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",         "-1",           "65536",        "80 ",         " 80",
        "http",     "localhost:80", ":80",          "1.2.3.4",     "1.2.3.4:",
        "1.2.3:80", "1.2.3.4:x",    "1.2.3.4:8:9",  "::1:80",      "[::1]",
        "[::1]:",   "[::1:80",      "[1.2.3.4]:80", "[::1%lo]:80", "[]:80",
        "unix:",    "1.2.3.256:80", "0x50",
    };
    for (size_t i = 0; i < MK_LEN(bad); i++) {
        struct mk_sockaddr a;
        if (mk_sockaddr_parse(mk_str_from_c(bad[i]), any, &a) != -EINVAL)
            fail_msg("%s is taken", bad[i]);
    }
}

static void sockaddr_unix_path_length_is_limited(void **state)
{
    (void)state;
    char text[5 + sizeof((struct sockaddr_un *)0)->sun_path + 1], buffer[MK_SOCKADDR_TEXT_MAX];
    struct mk_sockaddr a;
    memset(text, 'x', sizeof text);
    memcpy(text, "unix:", 5);
    size_t longest = 5 + sizeof a.un.sun_path - 1;
    assert_int_equal(mk_sockaddr_parse(mk_str_of(text, longest), any, &a), 0);
    assert_int_equal(print(&a, buffer).len, longest);
    assert_int_equal(mk_sockaddr_parse(mk_str_of(text, longest + 1), any, &a), -EINVAL);
}

static void sockaddr_bare_port_uses_given_host(void **state)
{
    (void)state;
    char buffer[MK_SOCKADDR_TEXT_MAX];
    struct mk_sockaddr a;
    assert_int_equal(mk_sockaddr_parse(MK_STR("80"), MK_STR("127.0.0.1"), &a), 0);
    assert_str(print(&a, buffer), "127.0.0.1:80");
    assert_int_equal(mk_sockaddr_parse(MK_STR("80"), MK_STR("::1"), &a), 0);
    assert_str(print(&a, buffer), "[::1]:80");
    assert_int_equal(mk_sockaddr_parse(MK_STR("80"), MK_STR("nowhere"), &a), -EINVAL);
}

static void sockaddr_comparison_covers_every_part(void **state)
{
    (void)state;
    static const char *const all[] = {"127.0.0.1:80", "127.0.0.1:81", "127.0.0.2:80", "[::1]:80",
                                      "[::2]:80",     "[::1]:81",     "unix:/a",      "unix:/b"};
    for (size_t i = 0; i < MK_LEN(all); i++)
        for (size_t j = 0; j < MK_LEN(all); j++) {
            struct mk_sockaddr a = parse(all[i]), b = parse(all[j]);
            assert_int_equal(mk_sockaddr_eq(&a, &b), i == j);
        }
}

static void sockaddr_wildcard_is_recognized(void **state)
{
    (void)state;
    struct mk_sockaddr a = parse("80"), b = parse("[::]:80"), c = parse("127.0.0.1:80"),
                       d = parse("[::1]:80"), e = parse("unix:/a");
    assert_true(mk_sockaddr_is_any(&a) && mk_sockaddr_is_any(&b));
    assert_false(mk_sockaddr_is_any(&c) || mk_sockaddr_is_any(&d) || mk_sockaddr_is_any(&e));
}

static void sockaddr_getsockname_returns_address(void **state)
{
    (void)state;
    struct mk_sockaddr a = parse("127.0.0.1:0"), got;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, &a.any, a.len), 0);
    assert_int_equal(mk_sockaddr_getsockname(fd, &got), 0);
    assert_int_equal(got.v4.sin_addr.s_addr, a.v4.sin_addr.s_addr);
    assert_true(mk_sockaddr_port(&got) > 0);
    close(fd);
    assert_int_equal(mk_sockaddr_getsockname(fd, &got), -EBADF);
}

static void sockaddr_peer_is_printed_without_port(void **state)
{
    (void)state;
    static const struct {
        const char *addr, *printed;
    } cases[] = {
        {"192.0.2.1:1234", "192.0.2.1"},       {"255.255.255.255:1", "255.255.255.255"},
        {"[2001:db8::1]:1234", "2001:db8::1"}, {"[::ffff:192.0.2.1]:80", "192.0.2.1"},
        {"[::192.0.2.1]:80", "::192.0.2.1"},   {"unix:/a", "unix:"},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        char buffer[MK_SOCKADDR_TEXT_MAX];
        struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
        struct mk_sockaddr a = parse(cases[i].addr);
        struct mk_addr p;
        memset(&p, 0xff, sizeof p);
        mk_sockaddr_to_addr(&a, &p);
        mk_addr_format(&p, &out);
        assert_str(mk_buf_str(&out), cases[i].printed);
        assert_int_equal(p.port, mk_sockaddr_port(&a));
    }
    assert_int_equal(sizeof(struct mk_addr), 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sockaddr_is_parsed_and_printed),
        cmocka_unit_test(sockaddr_rejects_malformed),
        cmocka_unit_test(sockaddr_unix_path_length_is_limited),
        cmocka_unit_test(sockaddr_bare_port_uses_given_host),
        cmocka_unit_test(sockaddr_comparison_covers_every_part),
        cmocka_unit_test(sockaddr_wildcard_is_recognized),
        cmocka_unit_test(sockaddr_getsockname_returns_address),
        cmocka_unit_test(sockaddr_peer_is_printed_without_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
