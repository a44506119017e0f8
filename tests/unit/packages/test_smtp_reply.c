/* SPDX-License-Identifier: Apache-2.0 */
/* SMTP replies are read completely or not at all; no message can end its own transmission early. */
#include <stdio.h>
#include <stdlib.h>

#include <errno.h>
#include <smtp/protocol.h>

#include "unit/test.h"

static struct smtp_reply read_reply(const char *text)
{
    struct smtp_reply r;
    assert_int_equal(smtp_reply_parse(mk_str_from_c(text), &r), strlen(text));
    return r;
}

static mk_str reply_text(const struct smtp_reply *r)
{
    static char buffer[1000];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    smtp_reply_format_printable(&out, r);
    return mk_buf_str(&out);
}

static void smtp_reply_is_parsed(void **state)
{
    struct smtp_reply r = read_reply("250 fine\r\n");
    (void)state;
    assert_int_equal(r.code, 250);
    assert_str(reply_text(&r), "fine");
    r = read_reply("550-no such user\r\n550-\r\n550 at all\x1b[2J\n");
    assert_int_equal(r.code, 550);
    assert_str(reply_text(&r), "no such user at all\\x1b[2J");
    r = read_reply("354\r\n");
    assert_str(reply_text(&r), "");
    assert_int_equal(smtp_reply_parse(MK_STR("220 a\r\n250 b\r\n"), &r), 7);
}

static void smtp_reply_waits_for_completeness(void **state)
{
    static const char text[] = "250-one\r\n250 two\r\n";
    struct smtp_reply r;
    (void)state;
    for (size_t n = 0; n < sizeof text - 1; n++)
        assert_int_equal(smtp_reply_parse(mk_str_of(text, n), &r), 0);
}

static void smtp_reply_rejects_malformed(void **state)
{
    static const char *const wrong[] = {"\r\n",      "25\r\n",          "150 x\r\n",   "650 x\r\n",
                                        "2x0 x\r\n", "250x\r\n",        "SSH-2.0\r\n", "250-a\r\n251 b\r\n",
                                        "250_a\r\n", "HTTP/1.1 400\r\n"};
    struct smtp_reply r;
    struct mk_buf many = mk_buf_growing(1 << 20);
    (void)state;
    for (size_t i = 0; i < MK_LEN(wrong); i++)
        assert_int_equal(smtp_reply_parse(mk_str_from_c(wrong[i]), &r), -EPROTO);
    for (int i = 0; i < SMTP_LINE_MAX; i++)
        mk_buf_add_char(&many, '2');
    assert_int_equal(smtp_reply_parse(mk_buf_str(&many), &r), -EPROTO);
    mk_buf_clear(&many);
    for (int i = 0; i < SMTP_LINES_MAX; i++)
        mk_buf_add(&many, MK_STR("250-x\r\n"));
    assert_int_equal(smtp_reply_parse(mk_buf_str(&many), &r), -EPROTO);
    mk_buf_free(&many);
}

static void smtp_extensions_are_parsed(void **state)
{
    struct smtp_reply r =
        read_reply("250-8BITMIME greets you\r\n250-size 1000\r\n250-AUTH LOGIN plain\r\n250 8bitMIME\r\n");
    struct smtp_extensions x = smtp_extensions_parse(&r);
    (void)state;
    assert_true(x.has_8bitmime && x.auth_plain && x.has_size);
    assert_int_equal(x.size_max, 1000);
    r = read_reply("250-AUTH PLAIN\r\n250-SIZE\r\n250 AUTHPLAIN\r\n");
    x = smtp_extensions_parse(&r);
    assert_true(!x.has_8bitmime && !x.auth_plain && x.has_size && x.size_max == 0);
    r = read_reply("250-x\r\n250 SIZE 99999999999999999999999\r\n");
    assert_int_equal(smtp_extensions_parse(&r).size_max, 0);
}

static mk_str data_of(const char *text)
{
    static char buffer[4096];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    assert_int_equal(smtp_data_format(&out, mk_str_from_c(text)), 0);
    return mk_buf_str(&out);
}

static void smtp_message_dots_are_stuffed(void **state)
{
    static char line[1100];
    struct mk_buf out = mk_buf_fixed(line, 10);
    (void)state;
    assert_str(data_of("a\nb"), "a\r\nb\r\n.\r\n");
    assert_str(data_of("a\r\n.\r\n..b\r\n"), "a\r\n..\r\n...b\r\n.\r\n");
    assert_str(data_of("a\r.\rMAIL\n.\n"), "a\r\n..\r\nMAIL\r\n..\r\n.\r\n");
    assert_str(data_of("\r\n\n\r.\n\r"), "\r\n\r\n\r\n..\r\n\r\n.\r\n");
    assert_str(data_of(""), ".\r\n");
    assert_int_equal(smtp_data_format(&out, MK_STR("a\0b")), -EINVAL);
    assert_int_equal(smtp_data_format(&out, MK_STR("more than ten")), -ENOMEM);
    memset(line, 'x', SMTP_TEXT_LINE_MAX + 1);
    struct mk_buf large = mk_buf_growing(5000);
    assert_int_equal(smtp_data_format(&large, mk_str_of(line, SMTP_TEXT_LINE_MAX + 1)), -EINVAL);
    mk_buf_clear(&large);
    assert_int_equal(smtp_data_format(&large, mk_str_of(line, SMTP_TEXT_LINE_MAX)), 0);
    mk_buf_free(&large);
    assert_true(smtp_is_8bit(MK_STR("\xc3\xa4")) && !smtp_is_8bit(MK_STR("a\x7f")));
}

/* The message is not NUL-terminated: its heap block ends with its last byte. */
static void smtp_message_is_not_read_beyond_its_end(void **state)
{
    static const char *const texts[] = {"a\r", "a\r\n", "\r", "a"};
    (void)state;
    for (size_t i = 0; i < MK_LEN(texts); i++) {
        char buffer[64], wanted[16];
        struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
        size_t len = strlen(texts[i]);
        char *exact = malloc(len);
        assert_non_null(exact);
        memcpy(exact, texts[i], len);
        assert_int_equal(smtp_data_format(&out, mk_str_of(exact, len)), 0);
        (void)snprintf(wanted, sizeof wanted, "%s\r\n.\r\n", texts[i][0] == 'a' ? "a" : "");
        assert_str(mk_buf_str(&out), wanted);
        free(exact);
    }
    assert_str(data_of("\n\r"), "\r\n\r\n.\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smtp_reply_is_parsed),
        cmocka_unit_test(smtp_reply_waits_for_completeness),
        cmocka_unit_test(smtp_reply_rejects_malformed),
        cmocka_unit_test(smtp_extensions_are_parsed),
        cmocka_unit_test(smtp_message_dots_are_stuffed),
        cmocka_unit_test(smtp_message_is_not_read_beyond_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
