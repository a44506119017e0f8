/* SPDX-License-Identifier: Apache-2.0 */
#include "load/url.h"

#include "unit/test.h"

static void expect(char *const *fields, bool closes, const char *text)
{
    char buffer[512];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    struct load_url u;
    assert_null(load_url_parse(MK_STR("http://h:8080/a?b#c"), &u));
    load_url_write_request(&out, &u, "pace/1", fields, closes);
    assert_str(mk_buf_str(&out), text);
}

static void request_has_client_and_host(void **state)
{
    char *none[] = {NULL};
    (void)state;
    expect(none, false, "GET /a?b HTTP/1.1\r\nHost: h:8080\r\nUser-Agent: pace/1\r\n\r\n");
    expect(none, true,
           "GET /a?b HTTP/1.1\r\nHost: h:8080\r\nUser-Agent: pace/1\r\nConnection: close\r\n\r\n");
}

static void request_headers_replace_defaults(void **state)
{
    char host[] = "host: other", agent[] = "User-agent:", more[] = "A: b";
    char *fields[] = {host, more, agent, NULL};
    (void)state;
    expect(fields, false, "GET /a?b HTTP/1.1\r\nhost: other\r\nA: b\r\nUser-agent:\r\n\r\n");
}

static void request_close_overrides_headers(void **state)
{
    char keep[] = "connection: keep-alive", host[] = "Host: h", agent[] = "User-Agent: a";
    char *fields[] = {keep, host, agent, NULL};
    (void)state;
    expect(fields, true, "GET /a?b HTTP/1.1\r\nHost: h\r\nUser-Agent: a\r\nConnection: close\r\n\r\n");
    expect(fields, false, "GET /a?b HTTP/1.1\r\nconnection: keep-alive\r\nHost: h\r\nUser-Agent: a\r\n\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_has_client_and_host),
        cmocka_unit_test(request_headers_replace_defaults),
        cmocka_unit_test(request_close_overrides_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
