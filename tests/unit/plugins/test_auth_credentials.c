/* SPDX-License-Identifier: Apache-2.0 */
/* Parses Authorization: Basic (RFC 7617) and Digest (RFC 7616). */
#include "unit/test.h"

#include <monkey/text.h>
#include <stdio.h>
#include <string.h>

#include "credentials.h"

static void credentials_scheme_ends_at_space(void **state)
{
    mk_str rest;
    (void)state;
    assert_str(auth_scheme_split(MK_STR("Basic  YTpi "), &rest), "Basic");
    assert_str(rest, "YTpi");
    assert_str(auth_scheme_split(MK_STR("Basic"), &rest), "Basic");
    assert_null(rest.p);
    assert_str(auth_scheme_split(MK_STR("Basic "), &rest), "Basic");
    assert_non_null(rest.p);
    assert_int_equal(rest.len, 0);
}

/* ---- Basic ---- */

static bool read_basic(mk_str plain, char buffer[AUTH_BASIC_BUF_SIZE], struct auth_basic *out)
{
    static char text[2048];
    struct mk_buf b = mk_buf_fixed(text, sizeof text);
    mk_base64_encode(&b, plain);
    assert_false(b.failed);
    return auth_basic_parse(mk_buf_str(&b), buffer, out);
}

static void credentials_basic_user_ends_at_first_colon(void **state)
{
    char buffer[AUTH_BASIC_BUF_SIZE];
    struct auth_basic basic;
    (void)state;
    /* The example of RFC 7617, section 2. */
    assert_true(auth_basic_parse(MK_STR("QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), buffer, &basic));
    assert_str(basic.user, "Aladdin");
    assert_str(basic.password, "open sesame");
    assert_int_equal(basic.password.p[basic.password.len], 0);
    assert_true(read_basic(MK_STR("a:b:c"), buffer, &basic));
    assert_str(basic.user, "a");
    assert_str(basic.password, "b:c");
    assert_true(read_basic(MK_STR(":"), buffer, &basic));
    assert_int_equal(basic.user.len, 0);
    assert_int_equal(basic.password.len, 0);
}

static void credentials_basic_rejects_malformed(void **state)
{
    char buffer[AUTH_BASIC_BUF_SIZE];
    struct auth_basic basic;
    (void)state;
    assert_false(read_basic(MK_STR("no colon"), buffer, &basic));
    assert_false(read_basic(MK_STR(""), buffer, &basic));
    assert_false(read_basic(MK_STR("a\n:b"), buffer, &basic));
    assert_false(read_basic(MK_STR("a:b\x7f"), buffer, &basic));
    assert_false(read_basic(MK_STR("a:b\0c"), buffer, &basic));
    assert_false(auth_basic_parse(MK_STR("!!!!"), buffer, &basic));
    assert_true(read_basic(MK_STR("a\xc3\xa4:\xc3\xa4 ~"), buffer, &basic));
}

static void credentials_basic_password_has_crypt_length_limit(void **state)
{
    char buffer[AUTH_BASIC_BUF_SIZE], text[AUTH_BASIC_BUF_SIZE + 8];
    struct auth_basic basic;
    (void)state;
    memset(text, 'x', sizeof text);
    text[AUTH_NAME_MAX] = ':';
    assert_true(read_basic(mk_str_of(text, AUTH_NAME_MAX + 1 + AUTH_PASSWORD_MAX), buffer, &basic));
    assert_int_equal(basic.user.len, AUTH_NAME_MAX);
    assert_int_equal(basic.password.len, AUTH_PASSWORD_MAX);
    assert_int_equal(basic.password.p[AUTH_PASSWORD_MAX], 0);
    assert_false(read_basic(mk_str_of(text, AUTH_NAME_MAX + 1 + AUTH_PASSWORD_MAX + 1), buffer, &basic));
    assert_false(read_basic(mk_str_of(text, sizeof text), buffer, &basic));
}

/* ---- Hexadecimal ---- */

static void credentials_hex_needs_exact_length(void **state)
{
    uint8_t out[4] = {9, 9, 9, 9};
    (void)state;
    assert_true(auth_hex_decode(MK_STR("00fFa1"), out, 3));
    assert_memory_equal(out, "\x00\xff\xa1\x09", 4);
    assert_false(auth_hex_decode(MK_STR("00fFa1"), out, 2));
    assert_false(auth_hex_decode(MK_STR("00fFa1"), out, 4));
    assert_false(auth_hex_decode(MK_STR("00fFa"), out, 3));
    assert_false(auth_hex_decode(MK_STR("g0"), out, 1));
    assert_false(auth_hex_decode(MK_STR("0g"), out, 1));
    assert_false(auth_hex_decode(MK_STR("00g0"), out, 2));
}

/* ---- Digest ---- */

static struct auth_digest digest;

static bool read_digest(const char *text)
{
    static char buffer[1024];
    static struct mk_buf b;
    b = mk_buf_fixed(buffer, strlen(text));
    return auth_digest_parse(mk_str_from_c(text), &b, &digest);
}

#define REST                                                                                                 \
    "realm=\"r\", nonce=\"n\", uri=\"/a?b=c,d\", response=\"00\", algorithm=MD5, cnonce=\"c\", qop=auth, "   \
    "nc=00000001"

static void credentials_digest_parameters_are_found_by_name(void **state)
{
    (void)state;
    assert_true(read_digest("username=\"Mufasa\", " REST));
    assert_str(digest.at[AUTH_USERNAME], "Mufasa");
    assert_str(digest.at[AUTH_REALM], "r");
    assert_str(digest.at[AUTH_NONCE], "n");
    assert_str(digest.at[AUTH_URI], "/a?b=c,d");
    assert_str(digest.at[AUTH_RESPONSE], "00");
    assert_str(digest.at[AUTH_ALGORITHM], "MD5");
    assert_str(digest.at[AUTH_CNONCE], "c");
    assert_str(digest.at[AUTH_QOP], "auth");
    assert_str(digest.at[AUTH_NC], "00000001");
    assert_null(digest.at[AUTH_USERHASH].p);
    assert_true(read_digest("USERNAME = \"a\" , UserHash=true, new=\"thing\"," REST));
    assert_str(digest.at[AUTH_USERNAME], "a");
    assert_str(digest.at[AUTH_USERHASH], "true");
}

static void credentials_digest_requires_each_parameter_once(void **state)
{
    static const char *const needed[] = {"username=\"u\"", "realm=\"r\"",  "nonce=\"n\"", "uri=\"/\"",
                                         "response=\"0\"", "cnonce=\"c\"", "qop=auth",    "nc=00000001"};
    (void)state;
    for (size_t without = 0; without <= MK_LEN(needed); without++) {
        char text[256] = "", twice[300];
        for (size_t i = 0; i < MK_LEN(needed); i++)
            if (i != without)
                (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s, ", needed[i]);
        assert_int_equal(read_digest(text), without == MK_LEN(needed));
        if (without == MK_LEN(needed))
            break;
        (void)snprintf(twice, sizeof twice, "%s%s, %s", text, needed[without], needed[without]);
        assert_false(read_digest(twice));
    }
}

static void credentials_digest_unquotes_strings(void **state)
{
    static const char *const wrong[] = {
        "username=\"open, ",    "username=\"a\\\", ", "username=\"a\"b\", ", "username=\", ",
        "username=\"a\x01\", ", "username=a b, ",     "username, ",          "=a, ",
        "user name=a, ",        "username=, "};
    (void)state;
    assert_true(read_digest("username=\"a \\\"b\\\" \\\\c\", " REST));
    assert_str(digest.at[AUTH_USERNAME], "a \"b\" \\c");
    assert_str(digest.at[AUTH_REALM], "r");
    assert_true(read_digest("username=\"\\a\", new=\"x\\yz\", " REST));
    assert_str(digest.at[AUTH_USERNAME], "a");
    assert_true(read_digest("username=\"\", " REST));
    assert_int_equal(digest.at[AUTH_USERNAME].len, 0);
    assert_true(read_digest("username=plain, " REST));
    assert_str(digest.at[AUTH_USERNAME], "plain");
    for (size_t i = 0; i < MK_LEN(wrong); i++) {
        char text[300];
        (void)snprintf(text, sizeof text, "%s" REST, wrong[i]);
        if (read_digest(text))
            fail_msg("`%s` is read", text);
    }
}

/* RFC 5987, section 3.2 */
static void credentials_digest_decodes_extended_user_name(void **state)
{
    static const char *const wrong[] = {"username*=UTF-8''a, username=\"a\", ",
                                        "username*=\"UTF-8''a\", ",
                                        "username*=ISO-8859-1''a, ",
                                        "username*=UTF-8'a, ",
                                        "username*=UTF-8, ",
                                        "username*=UTF-8''a%2, ",
                                        "username*=UTF-8''a%0A, "};
    (void)state;
    assert_true(read_digest("username*=UTF-8'da'J%C3%A4s%c3%b8n, " REST));
    assert_str(digest.at[AUTH_USERNAME], "J\xc3\xa4s\xc3\xb8n");
    assert_true(read_digest("username*=utf-8''a, new=\"\\b\", " REST));
    assert_str(digest.at[AUTH_USERNAME], "a");
    for (size_t i = 0; i < MK_LEN(wrong); i++) {
        char text[300];
        (void)snprintf(text, sizeof text, "%s" REST, wrong[i]);
        if (read_digest(text))
            fail_msg("`%s` is read", text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(credentials_scheme_ends_at_space),
                                       cmocka_unit_test(credentials_basic_user_ends_at_first_colon),
                                       cmocka_unit_test(credentials_basic_rejects_malformed),
                                       cmocka_unit_test(credentials_basic_password_has_crypt_length_limit),
                                       cmocka_unit_test(credentials_hex_needs_exact_length),
                                       cmocka_unit_test(credentials_digest_parameters_are_found_by_name),
                                       cmocka_unit_test(credentials_digest_requires_each_parameter_once),
                                       cmocka_unit_test(credentials_digest_unquotes_strings),
                                       cmocka_unit_test(credentials_digest_decodes_extended_user_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
