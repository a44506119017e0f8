/* SPDX-License-Identifier: Apache-2.0 */
#include "http/header.h"

#include "unit/headers.h"
#include "unit/test.h"

static struct mk_header_field buffer[MK_HEADERS_MAX];

static const mk_str known[MK_HEADER_IDS] = {
    [MK_HEADER_ACCEPT] = MK_STR_INIT("Accept"),
    [MK_HEADER_ACCEPT_ENCODING] = MK_STR_INIT("Accept-Encoding"),
    [MK_HEADER_ACCEPT_LANGUAGE] = MK_STR_INIT("Accept-Language"),
    [MK_HEADER_ACCEPT_RANGES] = MK_STR_INIT("Accept-Ranges"),
    [MK_HEADER_AGE] = MK_STR_INIT("Age"),
    [MK_HEADER_ALLOW] = MK_STR_INIT("Allow"),
    [MK_HEADER_AUTHORIZATION] = MK_STR_INIT("Authorization"),
    [MK_HEADER_CACHE_CONTROL] = MK_STR_INIT("Cache-Control"),
    [MK_HEADER_CONNECTION] = MK_STR_INIT("Connection"),
    [MK_HEADER_CONTENT_DISPOSITION] = MK_STR_INIT("Content-Disposition"),
    [MK_HEADER_CONTENT_ENCODING] = MK_STR_INIT("Content-Encoding"),
    [MK_HEADER_CONTENT_LANGUAGE] = MK_STR_INIT("Content-Language"),
    [MK_HEADER_CONTENT_LENGTH] = MK_STR_INIT("Content-Length"),
    [MK_HEADER_CONTENT_LOCATION] = MK_STR_INIT("Content-Location"),
    [MK_HEADER_CONTENT_RANGE] = MK_STR_INIT("Content-Range"),
    [MK_HEADER_CONTENT_TYPE] = MK_STR_INIT("Content-Type"),
    [MK_HEADER_COOKIE] = MK_STR_INIT("Cookie"),
    [MK_HEADER_DATE] = MK_STR_INIT("Date"),
    [MK_HEADER_DESTINATION] = MK_STR_INIT("Destination"),
    [MK_HEADER_ETAG] = MK_STR_INIT("ETag"),
    [MK_HEADER_EXPECT] = MK_STR_INIT("Expect"),
    [MK_HEADER_EXPIRES] = MK_STR_INIT("Expires"),
    [MK_HEADER_FORWARDED] = MK_STR_INIT("Forwarded"),
    [MK_HEADER_HOST] = MK_STR_INIT("Host"),
    [MK_HEADER_HTTP2_SETTINGS] = MK_STR_INIT("HTTP2-Settings"),
    [MK_HEADER_IF_MATCH] = MK_STR_INIT("If-Match"),
    [MK_HEADER_IF_MODIFIED_SINCE] = MK_STR_INIT("If-Modified-Since"),
    [MK_HEADER_IF_NONE_MATCH] = MK_STR_INIT("If-None-Match"),
    [MK_HEADER_IF_RANGE] = MK_STR_INIT("If-Range"),
    [MK_HEADER_IF_UNMODIFIED_SINCE] = MK_STR_INIT("If-Unmodified-Since"),
    [MK_HEADER_KEEP_ALIVE] = MK_STR_INIT("Keep-Alive"),
    [MK_HEADER_LAST_MODIFIED] = MK_STR_INIT("Last-Modified"),
    [MK_HEADER_LINK] = MK_STR_INIT("Link"),
    [MK_HEADER_LOCATION] = MK_STR_INIT("Location"),
    [MK_HEADER_MAX_FORWARDS] = MK_STR_INIT("Max-Forwards"),
    [MK_HEADER_ORIGIN] = MK_STR_INIT("Origin"),
    [MK_HEADER_PRAGMA] = MK_STR_INIT("Pragma"),
    [MK_HEADER_PRIORITY] = MK_STR_INIT("Priority"),
    [MK_HEADER_PROXY_AUTHENTICATE] = MK_STR_INIT("Proxy-Authenticate"),
    [MK_HEADER_PROXY_AUTHORIZATION] = MK_STR_INIT("Proxy-Authorization"),
    [MK_HEADER_PROXY_CONNECTION] = MK_STR_INIT("Proxy-Connection"),
    [MK_HEADER_RANGE] = MK_STR_INIT("Range"),
    [MK_HEADER_REFERER] = MK_STR_INIT("Referer"),
    [MK_HEADER_RETRY_AFTER] = MK_STR_INIT("Retry-After"),
    [MK_HEADER_SEC_WEBSOCKET_ACCEPT] = MK_STR_INIT("Sec-WebSocket-Accept"),
    [MK_HEADER_SEC_WEBSOCKET_EXTENSIONS] = MK_STR_INIT("Sec-WebSocket-Extensions"),
    [MK_HEADER_SEC_WEBSOCKET_KEY] = MK_STR_INIT("Sec-WebSocket-Key"),
    [MK_HEADER_SEC_WEBSOCKET_PROTOCOL] = MK_STR_INIT("Sec-WebSocket-Protocol"),
    [MK_HEADER_SEC_WEBSOCKET_VERSION] = MK_STR_INIT("Sec-WebSocket-Version"),
    [MK_HEADER_SERVER] = MK_STR_INIT("Server"),
    [MK_HEADER_SET_COOKIE] = MK_STR_INIT("Set-Cookie"),
    [MK_HEADER_STATUS] = MK_STR_INIT("Status"),
    [MK_HEADER_TE] = MK_STR_INIT("TE"),
    [MK_HEADER_TRAILER] = MK_STR_INIT("Trailer"),
    [MK_HEADER_TRANSFER_ENCODING] = MK_STR_INIT("Transfer-Encoding"),
    [MK_HEADER_UPGRADE] = MK_STR_INIT("Upgrade"),
    [MK_HEADER_USER_AGENT] = MK_STR_INIT("User-Agent"),
    [MK_HEADER_VARY] = MK_STR_INIT("Vary"),
    [MK_HEADER_VIA] = MK_STR_INIT("Via"),
    [MK_HEADER_WWW_AUTHENTICATE] = MK_STR_INIT("WWW-Authenticate"),
    [MK_HEADER_X_FORWARDED_FOR] = MK_STR_INIT("X-Forwarded-For"),
    [MK_HEADER_X_FORWARDED_HOST] = MK_STR_INIT("X-Forwarded-Host"),
    [MK_HEADER_X_FORWARDED_PROTO] = MK_STR_INIT("X-Forwarded-Proto"),
};

static struct mk_headers fields_of(const char *const *names_and_values)
{
    struct mk_headers fields;
    mk_headers_init(&fields, buffer);
    for (; *names_and_values; names_and_values += 2)
        assert_true(headers_add(&fields, MK_HEADERS_MAX, mk_str_from_c(names_and_values[0]),
                                mk_str_from_c(names_and_values[1])));
    return fields;
}

/* Changes the letter case of the name. */
static void change_case(char *name, size_t len, int how)
{
    for (size_t i = 0; i < len; i++)
        if (mk_char_is_alpha(name[i]) && (how == 2 ? i % 2 : (size_t)how))
            name[i] = (char)(name[i] ^ 0x20);
}

static void header_known_name_is_found_in_any_case(void **state)
{
    (void)state;
    for (unsigned id = MK_HEADER_OTHER + 1; id < MK_HEADER_IDS; id++) {
        mk_str name = known[id];
        assert_true(mk_is_token(name));
        for (int how = 0; how < 3; how++) {
            char copy[32];
            memcpy(copy, name.p, name.len);
            change_case(copy, name.len, how);
            assert_int_equal(mk_header_find_id(mk_str_of(copy, name.len)), id);
        }
    }
}

/* Changing any bit of a name makes it a different name, unless the bit distinguishes upper from lower
 * case. */
static void header_similar_name_is_unknown(void **state)
{
    (void)state;
    for (unsigned id = MK_HEADER_OTHER + 1; id < MK_HEADER_IDS; id++) {
        mk_str name = known[id];
        for (size_t i = 0; i < name.len; i++) {
            for (unsigned bit = 0; bit < 8; bit++) {
                char copy[32];
                memcpy(copy, name.p, name.len);
                copy[i] = (char)((unsigned char)copy[i] ^ (1u << bit));
                bool same = bit == 5 && mk_char_is_alpha(name.p[i]);
                bool found = mk_header_find_id(mk_str_of(copy, name.len)) == id;
                assert_true(found == same);
            }
        }
        assert_int_equal(mk_header_find_id(mk_str_first(name, name.len - 1)), MK_HEADER_OTHER);
    }
}

static void header_other_names_are_unknown(void **state)
{
    (void)state;
    static const char *const names[] = {"",
                                        "X",
                                        "Hosts",
                                        "X-Host",
                                        "Content_Length",
                                        "Content\rLength",
                                        "Date ",
                                        "A-Name-That-Is-Longer-Than-All-That-We-Know"};
    for (size_t i = 0; i < MK_LEN(names); i++)
        assert_int_equal(mk_header_find_id(mk_str_from_c(names[i])), MK_HEADER_OTHER);
}

static void header_get_returns_first(void **state)
{
    (void)state;
    const char *const lines[] = {"X-One", "1", "Host", "a", "host", "b", "Cookie", "", "x-one", "2", NULL};
    struct mk_headers fields = fields_of(lines);
    assert_int_equal(fields.n, 5);
    assert_str(mk_headers_get(&fields, MK_HEADER_HOST), "a");
    assert_non_null(mk_headers_get(&fields, MK_HEADER_COOKIE).p);
    assert_null(mk_headers_get(&fields, MK_HEADER_RANGE).p);
    assert_true(mk_headers_has(&fields, MK_HEADER_COOKIE));
    assert_false(mk_headers_has(&fields, MK_HEADER_RANGE));
    assert_str(mk_headers_find(&fields, MK_STR("X-ONE")), "1");
    assert_str(mk_headers_find(&fields, MK_STR("HOST")), "a");
    assert_null(mk_headers_find(&fields, MK_STR("X-Two")).p);
}

static void header_next_returns_all_in_order(void **state)
{
    (void)state;
    const char *const lines[] = {"Via", "1", "X", "-", "VIA", "2", "Vary", "-", "via", "3", NULL};
    struct mk_headers fields = fields_of(lines);
    mk_str value;
    char all[8] = {0};
    for (unsigned at = 0; mk_headers_next(&fields, MK_HEADER_VIA, &at, &value);)
        strncat(all, value.p, value.len);
    assert_string_equal(all, "123");
    unsigned at = 0;
    assert_false(mk_headers_next(&fields, MK_HEADER_AGE, &at, &value));
    assert_true(mk_headers_next(&fields, MK_HEADER_OTHER, &at, &value));
    assert_str(value, "-");
    assert_false(mk_headers_next(&fields, MK_HEADER_OTHER, &at, &value));
}

static void header_list_is_split_at_unquoted_commas(void **state)
{
    (void)state;
    static const char *const expected[] = {"a", "b c", "\"d, e\"", "f=\"g\\\",h\";i", "\"j, k"};
    mk_str list = MK_STR(" ,a,\tb c , \"d, e\",,f=\"g\\\",h\";i ,\"j, k"), element;
    for (size_t i = 0; i < MK_LEN(expected); i++) {
        assert_true(mk_header_list_next(&list, &element));
        assert_str(element, expected[i]);
    }
    assert_false(mk_header_list_next(&list, &element));
    mk_str nothing = {NULL, 0}, blanks = MK_STR(" , ,\t"), escape = MK_STR("\"\\");
    assert_false(mk_header_list_next(&nothing, &element));
    assert_false(mk_header_list_next(&blanks, &element));
    assert_true(mk_header_list_next(&escape, &element));
    assert_str(element, "\"\\");
    assert_false(mk_header_list_next(&escape, &element));
}

static void header_token_is_found_in_all_lines(void **state)
{
    (void)state;
    const char *const lines[] = {"Connection", "keep-alive", "Connection", "\"close\", Upgrade", NULL};
    struct mk_headers fields = fields_of(lines);
    assert_true(mk_headers_has_token(&fields, MK_HEADER_CONNECTION, MK_STR("UPGRADE")));
    assert_true(mk_headers_has_token(&fields, MK_HEADER_CONNECTION, MK_STR("Keep-Alive")));
    assert_false(mk_headers_has_token(&fields, MK_HEADER_CONNECTION, MK_STR("close")));
    assert_false(mk_headers_has_token(&fields, MK_HEADER_TE, MK_STR("trailers")));
    assert_true(mk_header_list_has(MK_STR("deflate;q=0.5, Trailers"), MK_STR("trailers")));
    assert_false(mk_header_list_has(MK_STR("trailers2, \"trailers, x\""), MK_STR("trailers")));
}

static void header_tokens_and_values_are_validated(void **state)
{
    (void)state;
    assert_true(mk_is_token(MK_STR("a!#$%&'*+-.^_`|~9Z")));
    assert_false(mk_is_token(MK_STR("")));
    assert_false(mk_is_token(MK_STR_NULL));
    assert_false(mk_is_token(MK_STR("a b")));
    assert_false(mk_is_token(MK_STR("a:")));
    assert_false(mk_is_token(MK_STR("\xe4")));
    assert_true(mk_is_header_value(MK_STR("")));
    assert_true(mk_is_header_value(MK_STR("a long value\twith a tab, \xe4 and all of it fine")));
    assert_false(mk_is_header_value(MK_STR("a long value that wants to split\r\nX: y")));
    assert_false(mk_is_header_value(MK_STR("a\nb")));
    assert_false(mk_is_header_value(MK_STR("a\rb")));
    assert_false(mk_is_header_value(MK_STR("a\0b")));
    assert_false(mk_is_header_value(MK_STR("a\x7f")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_known_name_is_found_in_any_case),
        cmocka_unit_test(header_similar_name_is_unknown),
        cmocka_unit_test(header_other_names_are_unknown),
        cmocka_unit_test(header_get_returns_first),
        cmocka_unit_test(header_next_returns_all_in_order),
        cmocka_unit_test(header_list_is_split_at_unquoted_commas),
        cmocka_unit_test(header_token_is_found_in_all_lines),
        cmocka_unit_test(header_tokens_and_values_are_validated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
