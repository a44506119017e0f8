/* SPDX-License-Identifier: Apache-2.0 */
#include "http/upgrade.h"

#include "unit/headers.h"
#include "unit/test.h"

#define KEY "dGhlIHNhbXBsZSBub25jZQ=="

enum { LINES = 8 };

static struct mk_header_field buffer[LINES];

/* Parses "Name: value" lines, NULL-terminated. */
static struct mk_headers fields_of(const char *const *lines)
{
    struct mk_headers fields;
    mk_headers_init(&fields, buffer);
    for (; *lines; lines++) {
        mk_str value = mk_str_from_c(*lines), name = mk_str_cut(&value, ':');
        assert_true(headers_add(&fields, LINES, name, mk_str_trim(value)));
    }
    return fields;
}

#define FIELDS(...) fields_of((const char *const[]){__VA_ARGS__, NULL})

static void upgrade_first_protocol_is_used(void **state)
{
    (void)state;
    struct mk_headers f = FIELDS("Connection: x, Upgrade", "Upgrade: a/1.0, websocket");
    assert_str(mk_upgrade_protocol(&f), "a/1.0");
    f = FIELDS("Upgrade: WebSocket", "Connection: upgrade");
    assert_str(mk_upgrade_protocol(&f), "websocket");
    f = FIELDS("Upgrade: , ,h2c", "Connection: close", "Connection: upgrade");
    assert_str(mk_upgrade_protocol(&f), "h2c");
}

static void upgrade_incomplete_headers_are_ignored(void **state)
{
    (void)state;
    static const char *const bad[][3] = {
        {"X: y"},
        {"Connection: upgrade"},
        {"Upgrade: a"},
        {"Upgrade: a", "Connection: close"},
        {"Upgrade:", "Connection: upgrade"},
        {"Upgrade: a b", "Connection: upgrade"},
        {"Upgrade: a/", "Connection: upgrade"},
        {"Upgrade: /", "Connection: upgrade"},
        {"Upgrade: a/b/c", "Connection: upgrade"},
        {"Upgrade: \"a\", b", "Connection: upgrade"},
    };
    for (size_t i = 0; i < MK_LEN(bad); i++) {
        struct mk_headers f = fields_of(bad[i]);
        assert_null(mk_upgrade_protocol(&f).p);
    }
}

static int check(bool with_key, const char *version, const char *key)
{
    struct mk_headers f = fields_of((const char *const[]){"Host: a", version, key, NULL});
    return mk_upgrade_check_websocket(&f, with_key);
}

static void upgrade_websocket_handshake_is_validated(void **state)
{
    (void)state;
    assert_int_equal(check(true, "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: " KEY), 0);
    assert_int_equal(check(false, "Sec-WebSocket-Version: 13", NULL), 0);
    assert_int_equal(check(false, "Sec-WebSocket-Version: 8", NULL), 426);
    assert_int_equal(check(true, "Sec-WebSocket-Version: 013", "Sec-WebSocket-Key: " KEY), 426);
    assert_int_equal(check(true, "Sec-WebSocket-Version: 13", NULL), 400);
    assert_int_equal(check(true, "X: y", "Sec-WebSocket-Key: " KEY), 400);
    static const char *const bad[] = {"Sec-WebSocket-Key:",
                                      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ",
                                      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=",
                                      "Sec-WebSocket-Key: " KEY "=",
                                      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZTEy",
                                      "Sec-WebSocket-Key: ********************===="};
    for (size_t i = 0; i < MK_LEN(bad); i++)
        assert_int_equal(check(true, "Sec-WebSocket-Version: 13", bad[i]), 400);
    struct mk_headers twice =
        FIELDS("Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: " KEY, "Sec-WebSocket-Key: " KEY);
    assert_int_equal(mk_upgrade_check_websocket(&twice, true), 400);
    twice = FIELDS("Sec-WebSocket-Version: 13", "Sec-WebSocket-Version: 13");
    assert_int_equal(mk_upgrade_check_websocket(&twice, false), 426);
}

/* RFC 6455, section 1.3. */
static void upgrade_websocket_accept_key(void **state)
{
    (void)state;
    char text[28];
    struct mk_buf out = mk_buf_fixed(text, sizeof text);
    mk_upgrade_websocket_accept_key(MK_STR(KEY), &out);
    assert_str(mk_buf_str(&out), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(upgrade_first_protocol_is_used),
        cmocka_unit_test(upgrade_incomplete_headers_are_ignored),
        cmocka_unit_test(upgrade_websocket_handshake_is_validated),
        cmocka_unit_test(upgrade_websocket_accept_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
