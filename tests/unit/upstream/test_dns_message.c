/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/dns_message.h"

#include <errno.h>
#include <string.h>

#include "unit/test.h"

static const struct mk_dns_query query = {.name = MK_STR_INIT("App.example"), .type = MK_DNS_A, .id = 0x1234};
static struct mk_dns_answer answer;

#define NAME                   "\3app\7example"
#define QUESTION               NAME "\0\0\1\0\1"
#define OWNER                  "\xc0\x0c"
#define HEAD(n)                "\x12\x34\x81\x80\0\1\0" n "\0\0\0\0" QUESTION
#define A(owner, ttl, address) owner "\0\1\0\1\0\0\0" ttl "\0\4" address

static int parse(const char *bytes, size_t len)
{
    return mk_dns_read_answer(&query, (const unsigned char *)bytes, len, &answer);
}
#define PARSE(text) parse(text, sizeof(text) - 1)

static void query_is_a_question_with_recursion(void **s)
{
    unsigned char out[MK_DNS_QUERY_MAX];
    static const char wanted[] = "\x12\x34\1\0\0\1\0\0\0\0\0\0\3App\7example\0\0\1\0\1";
    (void)s;
    assert_int_equal(mk_dns_write_query(&query, out), sizeof wanted - 1);
    assert_memory_equal(out, wanted, sizeof wanted - 1);
}

static void query_invalid_name_is_rejected(void **s)
{
    static const char *const names[] = {
        "", ".", "a..b", ".a", "a123456789012345678901234567890123456789012345678901234567890123.example"};
    unsigned char out[MK_DNS_QUERY_MAX];
    char longest[260];
    (void)s;
    for (size_t i = 0; i < MK_LEN(names); i++) {
        const struct mk_dns_query q = {.name = mk_str_from_c(names[i]), .type = MK_DNS_A};
        assert_int_equal(mk_dns_write_query(&q, out), 0);
    }
    for (size_t i = 0; i < sizeof longest; i++)
        longest[i] = i % 2 ? '.' : 'a';
    for (size_t len = 1; len < sizeof longest; len += 2) {
        const struct mk_dns_query q = {.name = mk_str_of(longest, len), .type = MK_DNS_A};
        assert_true((mk_dns_write_query(&q, out) > 0) == (len <= 253));
    }
}

static void answer_addresses_have_the_lowest_ttl(void **s)
{
    (void)s;
    assert_int_equal(PARSE(HEAD("\2") A(OWNER, "\x3c", "\1\2\3\4") A(NAME "\0", "\x1e", "\5\6\7\x08")), 0);
    assert_int_equal(answer.n, 2);
    assert_int_equal(answer.ttl, 30);
    assert_int_equal(answer.rcode, 0);
}

static void answer_of_other_owner_type_or_class_is_skipped(void **s)
{
    (void)s;
    assert_int_equal(PARSE(HEAD("\2") A("\1x" OWNER, "\1", "\1\2\3\4") OWNER "\0\1\0\3\0\0\0\1\0\4\1\2\3\4"),
                     0);
    assert_int_equal(answer.n, 0);
}

static void answer_aliases_are_followed_in_any_order(void **s)
{
    (void)s;
    assert_int_equal(PARSE(HEAD("\3") A("\1y\0", "\x09", "\1\2\3\4") "\1x\0\0\5\0\1\0\0\0\x08\0\3\1y\0" OWNER
                                                                     "\0\5\0\1\0\0\0\7\0\3\1X\0"),
                     0);
    assert_int_equal(answer.n, 1);
    assert_int_equal(answer.ttl, 7);
}

static void answer_alias_of_itself_ends(void **s)
{
    (void)s;
    assert_int_equal(PARSE(HEAD("\1") OWNER "\0\5\0\1\0\0\0\7\0\2" OWNER), -ELOOP);
}

static void answer_pointer_loops_are_malformed(void **s)
{
    (void)s;
    assert_int_equal(PARSE(HEAD("\1") A("\xc0\x1d", "\1", "\1\2\3\4")), -EBADMSG); /* to itself */
    assert_int_equal(PARSE(HEAD("\1") A("\xc0\x40", "\1", "\1\2\3\4")), -EBADMSG); /* forwards */
    assert_int_equal(PARSE(HEAD("\1") A("\x80", "\1", "\1\2\3\4")), -EBADMSG);     /* reserved */
}

static void answer_wrong_lengths_are_malformed(void **s)
{
    (void)s;
    assert_int_equal(PARSE(HEAD("\1") OWNER "\0\1\0\1\0\0\0\1\0\3\1\2\3"), -EBADMSG);
    assert_int_equal(PARSE(HEAD("\1") OWNER "\0\1\0\1\0\0\0\1\0\4\1\2\3"), -EBADMSG);
    assert_int_equal(PARSE(HEAD("\2") A(OWNER, "\1", "\1\2\3\4")), -EBADMSG);
}

static void answer_to_another_query_is_ignored(void **s)
{
    (void)s;
    assert_int_equal(PARSE(""), -EAGAIN);
    assert_int_equal(PARSE("\x12\x35\x81\x80\0\1\0\0\0\0\0\0" QUESTION), -EAGAIN);
    assert_int_equal(PARSE("\x12\x34\1\0\0\1\0\0\0\0\0\0" QUESTION), -EAGAIN); /* a query */
    assert_int_equal(PARSE("\x12\x34\x81\x80\0\1\0\0\0\0\0\0\3apq\7example\0\0\1\0\1"), -EAGAIN);
    assert_int_equal(PARSE("\x12\x34\x81\x80\0\1\0\0\0\0\0\0" NAME "\0\0\x1c\0\1"), -EAGAIN);
}

static void answer_error_and_truncation_are_reported(void **s)
{
    (void)s;
    assert_int_equal(PARSE("\x12\x34\x81\x83\0\1\0\0\0\0\0\0" QUESTION), 0);
    assert_int_equal(answer.rcode, MK_DNS_NXDOMAIN);
    assert_int_equal(PARSE("\x12\x34\x83\x80\0\1\0\x09\0\0\0\0" QUESTION), 0);
    assert_true(answer.is_truncated);
}

static void answer_srv_has_a_target(void **s)
{
    static const char text[] = "\x12\x34\x81\x80\0\1\0\1\0\0\0\0" NAME "\0\0\x21\0\1" OWNER
                               "\0\x21\0\1\0\0\0\1\0\x0a\0\2\0\3\0\x50\1N" OWNER;
    const struct mk_dns_query srv = {.name = MK_STR("app.example"), .type = MK_DNS_SRV, .id = 0x1234};
    char target[MK_DNS_NAME_MAX];
    (void)s;
    assert_int_equal(mk_dns_read_answer(&srv, (const unsigned char *)text, sizeof text - 1, &answer), 0);
    assert_int_equal(answer.n, 1);
    assert_int_equal(answer.records[0].priority, 2);
    assert_int_equal(answer.records[0].weight, 3);
    assert_int_equal(answer.records[0].port, 80);
    assert_true(mk_dns_read_name((const unsigned char *)text, sizeof text - 1, answer.records[0].at, target));
    assert_string_equal(target, "n.app.example");
}

static void name_with_other_bytes_is_no_host(void **s)
{
    static const unsigned char text[] = "\3a\nb\0";
    char name[MK_DNS_NAME_MAX];
    (void)s;
    assert_false(mk_dns_read_name(text, sizeof text - 1, 0, name));
    assert_false(mk_dns_read_name(text, 2, 0, name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(query_is_a_question_with_recursion),
        cmocka_unit_test(query_invalid_name_is_rejected),
        cmocka_unit_test(answer_addresses_have_the_lowest_ttl),
        cmocka_unit_test(answer_of_other_owner_type_or_class_is_skipped),
        cmocka_unit_test(answer_aliases_are_followed_in_any_order),
        cmocka_unit_test(answer_alias_of_itself_ends),
        cmocka_unit_test(answer_pointer_loops_are_malformed),
        cmocka_unit_test(answer_wrong_lengths_are_malformed),
        cmocka_unit_test(answer_to_another_query_is_ignored),
        cmocka_unit_test(answer_error_and_truncation_are_reported),
        cmocka_unit_test(answer_srv_has_a_target),
        cmocka_unit_test(name_with_other_bytes_is_no_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
