/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec.h"

#include <stdio.h>

#include "unit/test.h"

static char buffer[1024];
static struct mk_buf out;

static void setup(void)
{
    out = mk_buf_fixed(buffer, sizeof buffer);
}

typedef void escape_fn(struct mk_buf *out, mk_str s);

static void expect(escape_fn *escape, mk_str text, const char *expected)
{
    mk_buf_clear(&out);
    escape(&out, text);
    assert_false(out.failed);
    assert_str(mk_buf_str(&out), expected);
}

static void html_special_characters_are_escaped(void **state)
{
    (void)state;
    expect(mk_html_escape, MK_STR(""), "");
    expect(mk_html_escape, MK_STR("plain \xc3\xa4"), "plain \xc3\xa4");
    expect(mk_html_escape, MK_STR("<a href=\"x\" b='y'>&</a>"),
           "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;&lt;/a&gt;");
    expect(mk_html_escape, MK_STR("&&"), "&amp;&amp;");
}

static void url_special_characters_are_escaped(void **state)
{
    (void)state;
    expect(mk_url_escape, MK_STR("/a-b._~/C9"), "/a-b._~/C9");
    expect(mk_url_escape, MK_STR("/a b?c#d%e\"\0\xff"), "/a%20b%3Fc%23d%25e%22%00%FF");
    expect(mk_url_escape, MK_STR("+&=;:@!$,"), "%2B%26%3D%3B%3A%40%21%24%2C");
    expect(mk_url_escape_component, MK_STR("/a-b._~/C9"), "%2Fa-b._~%2FC9");
    expect(mk_url_escape_component, MK_STR("a b?&=+%\0\xff"), "a%20b%3F%26%3D%2B%25%00%FF");
    expect(mk_url_escape_component, MK_STR(""), "");
    expect(mk_url_escape_component, MK_STR_NULL, "");
}

static void url_unescape_decodes_or_fails(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        bool ok;
    } cases[] = {
        {"", "", true},         {"a+b", "a+b", true},         {"%61%2f%C3%a4", "a/\xc3\xa4", true},
        {"a%", "a", false},     {"a%6", "a", false},          {"a%6g", "a", false},
        {"%41%", "A", false},   {"%%41", "", false},          {"x%-1y", "x", false},
        {"%2561", "%61", true}, {"a%41b%42c", "aAbBc", true},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        mk_buf_clear(&out);
        if (mk_url_unescape(&out, mk_str_from_c(cases[i].from)) != cases[i].ok)
            fail_msg("\"%s\" has the wrong result", cases[i].from);
        assert_str(mk_buf_str(&out), cases[i].to);
    }
    mk_buf_clear(&out);
    assert_true(mk_url_unescape(&out, MK_STR("%00")));
    assert_true(mk_str_eq(mk_buf_str(&out), MK_STR("\0")));
}

static void url_escape_and_unescape_keep_every_byte(void **state)
{
    (void)state;
    char all[256], again[256], written[1024];
    struct mk_buf text = mk_buf_fixed(written, sizeof written), back = mk_buf_fixed(again, sizeof again);
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (char)i;
    mk_url_escape(&text, mk_str_of(all, sizeof all));
    assert_true(mk_url_unescape(&back, mk_buf_str(&text)));
    assert_false(text.failed || back.failed);
    assert_memory_equal(again, all, sizeof all);
}

static void log_escape_escapes_quotes_and_controls(void **state)
{
    (void)state;
    expect(mk_log_escape, MK_STR("GET /a b~"), "GET /a b~");
    expect(mk_log_escape, MK_STR("\"\\\n\x1b[\x7f\xff"), "\\x22\\x5c\\x0a\\x1b[\\x7f\\xff");
}

/* Puts one special byte at each position of strings of all lengths: the word-wise search must check every
 * byte. */
static void escape_checks_every_byte_at_every_position(void **state)
{
    (void)state;
    char text[26], expected[64];
    for (size_t len = 1; len <= sizeof text; len++) {
        for (size_t at = 0; at < len * 256; at++) {
            unsigned char c = (unsigned char)(at / len);
            bool plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
            memset(text, 'a', sizeof text);
            text[at % len] = (char)c;
            snprintf(expected, sizeof expected, plain ? "%.*s%c%.*s" : "%.*s\\x%02x%.*s", (int)(at % len),
                     "aaaaaaaaaaaaaaaaaaaaaaaaaa", c, (int)(len - at % len - 1),
                     "aaaaaaaaaaaaaaaaaaaaaaaaaa");
            expect(mk_log_escape, mk_str_of(text, len), expected);
        }
    }
}

static void escape_to_truncates_at_the_limit(void **state)
{
    (void)state;
    mk_buf_add(&out, MK_STR("0123"));
    mk_log_escape_to(&out, MK_STR("aaaaaaaaaaaa"), 12);
    assert_str(mk_buf_str(&out), "0123aaaa"); /* stops where the longest escape might not fit */
    mk_log_escape_to(&out, MK_STR("a"), 12);
    assert_int_equal(out.len, 8);
    mk_buf_clear(&out);
    mk_json_escape_to(&out, MK_STR("aaaaaaaaaaaa"), 12);
    assert_str(mk_buf_str(&out), "aaaa");
}

static void escape_into_small_buffer_fails(void **state)
{
    (void)state;
    static escape_fn *const all[] = {mk_html_escape, mk_url_escape, mk_log_escape, mk_base64_encode,
                                     mk_hex_encode};
    for (size_t i = 0; i < MK_LEN(all); i++) {
        char tiny[5];
        struct mk_buf b = mk_buf_fixed(tiny, sizeof tiny);
        all[i](&b, MK_STR("<\xff\xff\xff\xff>"));
        assert_true(b.failed);
        assert_true(b.len <= sizeof tiny);
    }
}

static void base64_is_encoded_and_decoded(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"},
                                           {"\xfb\xff\xfe", "+//+"}};
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        mk_str plain = mk_str_from_c(cases[i][0]), coded = mk_str_from_c(cases[i][1]);
        expect(mk_base64_encode, plain, cases[i][1]);
        mk_buf_clear(&out);
        assert_true(mk_base64_decode(&out, coded));
        assert_str(mk_buf_str(&out), cases[i][0]);
        while (coded.len && coded.p[coded.len - 1] == '=')
            coded.len--;
        mk_buf_clear(&out);
        assert_true(mk_base64_decode(&out, coded)); /* without padding */
        assert_str(mk_buf_str(&out), cases[i][0]);
    }
}

static void base64_invalid_is_rejected(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "Z",    "Zg=",  "Zg===",    "=",    "==",   "====", "Zm9vY", "Zm 9v",    "Zm9v\n", "Zm9-",
        "Zm9_", "Z===", "Zg==Zg==", "Zh==", "Zm9=", "Zh",   "Zm9v=", "Zm9v====", "Zg=a"};
    for (size_t i = 0; i < MK_LEN(bad); i++) {
        mk_buf_clear(&out);
        if (mk_base64_decode(&out, mk_str_from_c(bad[i])))
            fail_msg("\"%s\" is accepted", bad[i]);
    }
}

static void hex_is_encoded(void **state)
{
    (void)state;
    expect(mk_hex_encode, MK_STR(""), "");
    expect(mk_hex_encode, MK_STR("\0\x0f\xf0\xff"), "000ff0ff");
    expect(mk_hex_encode, MK_STR("\x00\x19\x9a\xa0\xaf\xf9\xff\x0a\x5b"),
           "00199aa0aff9ff0a5b"); /* more than 8 bytes */
}

static void consttime_eq_compares_every_byte(void **state)
{
    (void)state;
    assert_true(mk_consttime_eq(MK_STR(""), MK_STR_NULL));
    assert_true(mk_consttime_eq(MK_STR("secret"), MK_STR("secret")));
    assert_false(mk_consttime_eq(MK_STR("secret"), MK_STR("Secret")));
    assert_false(mk_consttime_eq(MK_STR("secret"), MK_STR("secres")));
    assert_false(mk_consttime_eq(MK_STR("secret"), MK_STR("secre")));
    assert_false(mk_consttime_eq(MK_STR("\x80"), MK_STR("\0")));
    assert_false(mk_consttime_eq(MK_STR("\x01\x01"), MK_STR("\0\0")));
}

static void random_bytes_differ(void **state)
{
    (void)state;
    static char one[1000], two[1000];
    unsigned same = 0;
    mk_random(one, sizeof one);
    mk_random(two, sizeof two);
    mk_random(two, 0);
    for (size_t i = 0; i < sizeof one; i++)
        same += one[i] == two[i];
    assert_true(same < 50); /* about 4 are expected */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(html_special_characters_are_escaped, setup),
        fixture_test(url_special_characters_are_escaped, setup),
        fixture_test(url_unescape_decodes_or_fails, setup),
        fixture_test(url_escape_and_unescape_keep_every_byte, setup),
        fixture_test(log_escape_escapes_quotes_and_controls, setup),
        fixture_test(escape_checks_every_byte_at_every_position, setup),
        fixture_test(escape_to_truncates_at_the_limit, setup),
        fixture_test(escape_into_small_buffer_fails, setup),
        fixture_test(base64_is_encoded_and_decoded, setup),
        fixture_test(base64_invalid_is_rejected, setup),
        fixture_test(hex_is_encoded, setup),
        fixture_test(consttime_eq_compares_every_byte, setup),
        fixture_test(random_bytes_differ, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
