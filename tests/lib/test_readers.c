/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what a program reads from requests: cookies. */
#include "lib/embed.h"

#include <monkey/cookie.h>

/* Sends a request as it is, and returns the response. */
static const char *exchange(unsigned port, const char *text)
{
    int fd = dial(port);
    assert_true(fd >= 0);
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
    return receive_all(fd);
}

static struct mk_server *start(const char *route, mk_server_fn *fn, unsigned *port)
{
    struct mk_server *s = server_with(route, fn, NULL, port);
    assert_int_equal(mk_server_start(s, 1), 0);
    return s;
}

#define HEAD(method, path) method " " path " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"

/* ---- Cookies ---- */

static enum mk_verdict respond_cookie(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    char room[256];
    struct mk_buf out = mk_buf_fixed(room, sizeof room);
    mk_str value;
    int e = mk_request_cookie(request, "a", &value);
    assert_true(e ? e == -ENOENT && !value.p : value.p && !value.p[value.len]);
    mk_buf_addf(&out, "%d <%s>", e, e ? "" : value.p);
    assert_int_equal(
        mk_response_add_cookie(request, response, &(struct mk_cookie){.name = "b", .value = MK_STR("1")}), 0);
    assert_int_equal(
        mk_response_add_cookie(request, response, &(struct mk_cookie){.name = "b", .value = MK_STR("1;")}),
        -EINVAL);
    mk_response_set_body(response, mk_buf_str(&out));
    return MK_DONE;
}

static void cookie_is_found_empty_or_absent(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = start("GET /", respond_cookie, &port);
    assert_holds(exchange(port, HEAD("GET", "/") "Cookie: x=1; a=two\r\n\r\n"), "\r\n\r\n0 <two>");
    assert_holds(exchange(port, HEAD("GET", "/") "Cookie: x=1\r\nCookie: a=3\r\n\r\n"), "\r\n\r\n0 <3>");
    assert_holds(exchange(port, HEAD("GET", "/") "Cookie: a=\r\n\r\n"), "\r\n\r\n0 <>");
    assert_holds(exchange(port, HEAD("GET", "/") "Cookie: A=1; aa=2\r\n\r\n"), "\r\n\r\n-2 <>");
    const char *reply = exchange(port, HEAD("GET", "/") "\r\n");
    assert_holds(reply, "\r\n\r\n-2 <>");
    assert_holds(reply, "\r\nSet-Cookie: b=1; Path=/; HttpOnly; SameSite=Lax\r\n");
    assert_null(strstr(strstr(reply, "Set-Cookie") + 1, "Set-Cookie"));
    mk_server_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cookie_is_found_empty_or_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
