/* SPDX-License-Identifier: Apache-2.0 */
#include <duda/mail.h>
#include <errno.h>

#include "unit/test.h"

static char buffer[16384];

static mk_str written(const struct duda_mail *m)
{
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    assert_int_equal(duda_mail_write(&out, m, 784111777), 0);
    return mk_buf_str(&out);
}

static void mail_message_is_formatted(void **state)
{
    const mk_str to[] = {MK_STR("ana@example.org"), MK_STR("bob@example.org")};
    const struct duda_mail m = {.from = MK_STR("shop@example.com"),
                                .to = to,
                                .n_to = 2,
                                .subject = MK_STR("Your order"),
                                .body = MK_STR("Hello\n.\n")};
    (void)state;
    mk_str text = written(&m);
    assert_contains(text, "From: shop@example.com\nDate: Sun, 06 Nov 1994 08:49:37 +0000\nMessage-ID: <");
    assert_contains(text, "@example.com>\nTo: ana@example.org,\n bob@example.org\nSubject: Your order\n");
    assert_contains(text, "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n"
                          "SGVsbG8KLgo=\n");
}

static void mail_non_ascii_text_is_encoded(void **state)
{
    const mk_str to = MK_STR("ana@example.org");
    struct duda_mail m = {.from = to,
                          .to = &to,
                          .n_to = 1,
                          .subject = MK_STR("Gr\xc3\xbc\xc3\x9f"
                                            "e")};
    char long_text[400];
    (void)state;
    assert_contains(written(&m), "Subject: =?utf-8?B?R3LDvMOfZQ==?=\n");
    for (size_t i = 0; i < sizeof long_text; i += 2)
        memcpy(long_text + i, "\xc3\xbc", 2);
    m.subject = m.body = mk_str_of(long_text, sizeof long_text);
    mk_str text = written(&m), line;
    while (text.p) {
        line = mk_str_cut(&text, '\n');
        assert_true(line.len <= 78);
        assert_true(mk_str_find(line, '\xc3') == MK_STR_NONE);
    }
}

static void mail_rejects_header_injection(void **state)
{
    static const char *const wrong[] = {"ana@example.org\nBcc: eve@example.org",
                                        "ana@example.org, eve@example.org",
                                        "ana@example.org\r",
                                        "Ana <ana@example.org>",
                                        "ana",
                                        "@example.org",
                                        "ana@",
                                        "a na@example.org",
                                        "ana@exa mple.org",
                                        "ana@.org",
                                        "-oQ/tmp@example.org",
                                        "",
                                        "\xc3\xbc@example.org",
                                        "ana@example.org>",
                                        "ana@example.org\x01"};
    const mk_str good = MK_STR("ana@example.org");
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    (void)state;
    for (size_t i = 0; i < MK_LEN(wrong); i++) {
        const mk_str bad = mk_str_from_c(wrong[i]);
        const struct duda_mail to = {.from = good, .to = &bad, .n_to = 1},
                               from = {.from = bad, .to = &good, .n_to = 1},
                               reply = {.from = good, .to = &good, .n_to = 1, .reply_to = bad};
        assert_int_equal(duda_mail_write(&out, &to, 0), -EINVAL);
        assert_int_equal(duda_mail_write(&out, &from, 0), -EINVAL);
        assert_int_equal(duda_mail_write(&out, &reply, 0), -EINVAL);
    }
    const struct duda_mail
        subject = {.from = good, .to = &good, .n_to = 1, .subject = MK_STR("a\nBcc: eve@example.org")},
        type = {.from = good, .to = &good, .n_to = 1, .content_type = MK_STR("text/html\nBcc: x@y")},
        none = {.from = good};
    assert_int_equal(duda_mail_write(&out, &subject, 0), -EINVAL);
    assert_int_equal(duda_mail_write(&out, &type, 0), -EINVAL);
    assert_int_equal(duda_mail_write(&out, &none, 0), -EINVAL);
    assert_int_equal(out.len, 0);
    const struct duda_mail many = {.from = good, .to = &good, .n_to = 101};
    assert_int_equal(duda_mail_write(&out, &many, 0), -EMSGSIZE);
}

static void mail_without_buffer_space_fails(void **state)
{
    const mk_str to = MK_STR("ana@example.org");
    const struct duda_mail m = {.from = to, .to = &to, .n_to = 1};
    struct mk_buf out = mk_buf_fixed(buffer, 50);
    (void)state;
    assert_int_equal(duda_mail_write(&out, &m, 0), -ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mail_message_is_formatted),
        cmocka_unit_test(mail_non_ascii_text_is_encoded),
        cmocka_unit_test(mail_rejects_header_injection),
        cmocka_unit_test(mail_without_buffer_space_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
