/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of the challenge plugin. */
#include "unit/test.h"

#include "token.h"

static struct challenge_scope scope(const char *key, const char *host, const char *address)
{
    struct challenge_scope s = {.key = mk_str_from_c(key), .host = mk_str_from_c(host)};
    assert_true(mk_addr_parse(mk_str_from_c(address), &s.client));
    return s;
}

static const struct challenge_token token = {.bits = 16, .time = 1790000000};
static const char key[] = "0123456789abcdef0123456789abcdef";

static mk_str write_token(struct challenge_scope s, enum challenge_kind kind, char out[CHALLENGE_TOKEN_LEN])
{
    assert_true(challenge_token_write(&s, kind, &token, out));
    return mk_str_of(out, CHALLENGE_TOKEN_LEN);
}

static bool reads_token(struct challenge_scope s, enum challenge_kind kind, mk_str text)
{
    struct challenge_token found;
    return challenge_token_read(&s, kind, text, &found) && found.bits == token.bits &&
           found.time == token.time;
}

/* The format must not change between versions: machines of different versions may share a key. */
static void token_has_a_fixed_format(void **state)
{
    char buf[CHALLENGE_TOKEN_LEN];
    mk_str text = write_token(scope(key, "site.example", "192.0.2.1"), CHALLENGE_TASK, buf);
    (void)state;
    assert_true(mk_str_eq(text, MK_STR("106ab13b80d7b93586daa903e0665edea8248c5c3b")));
    text = write_token(scope(key, "site.example", "2001:db8::1"), CHALLENGE_PASS, buf);
    assert_true(mk_str_eq(text, MK_STR("106ab13b80e57227f8322d8cfa68175b1984dfed2e")));
}

static void token_is_valid_only_for_its_scope_and_kind(void **state)
{
    char buf[CHALLENGE_TOKEN_LEN];
    struct challenge_scope own = scope(key, "site.example", "2001:db8:0:1::1");
    mk_str text = write_token(own, CHALLENGE_TASK, buf);
    (void)state;
    assert_true(reads_token(own, CHALLENGE_TASK, text));
    assert_true(reads_token(scope(key, "site.example", "[2001:db8:0:1:ffff::2]:80"), CHALLENGE_TASK, text));
    assert_false(reads_token(own, CHALLENGE_PASS, text));
    assert_false(reads_token(scope(key, "site.example", "2001:db8:0:2::1"), CHALLENGE_TASK, text));
    assert_false(reads_token(scope(key, "site.exampl", "2001:db8:0:1::1"), CHALLENGE_TASK, text));
    assert_false(reads_token(scope("x", "site.example", "2001:db8:0:1::1"), CHALLENGE_TASK, text));
    own.client.is_unix = 1;
    assert_false(reads_token(own, CHALLENGE_TASK, text));
}

static void token_with_a_changed_character_is_rejected(void **state)
{
    char buf[CHALLENGE_TOKEN_LEN];
    struct challenge_scope own = scope(key, "site.example", "192.0.2.1");
    mk_str text = write_token(own, CHALLENGE_PASS, buf);
    (void)state;
    for (size_t i = 0; i < sizeof buf; i++)
        for (int c = 0; c < 256; c++) {
            char was = buf[i];
            buf[i] = (char)c;
            assert_int_equal(reads_token(own, CHALLENGE_PASS, text), (char)c == was);
            buf[i] = was;
        }
    for (size_t len = 0; len < text.len; len++)
        assert_false(reads_token(own, CHALLENGE_PASS, mk_str_first(text, len)));
}

static void token_for_a_host_name_that_is_too_long_is_not_written(void **state)
{
    char host[2000], buf[CHALLENGE_TOKEN_LEN];
    struct challenge_scope s = scope(key, "", "192.0.2.1");
    struct challenge_token found;
    (void)state;
    memset(host, 'a', sizeof host);
    s.host = mk_str_of(host, sizeof host);
    assert_false(challenge_token_write(&s, CHALLENGE_TASK, &token, buf));
    memset(buf, '0', sizeof buf);
    assert_false(challenge_token_read(&s, CHALLENGE_TASK, mk_str_of(buf, sizeof buf), &found));
}

static void task_is_fresh_for_ten_minutes(void **state)
{
    (void)state;
    assert_true(challenge_task_is_fresh(&token, token.time));
    assert_true(challenge_task_is_fresh(&token, token.time - CHALLENGE_SKEW_S));
    assert_false(challenge_task_is_fresh(&token, token.time - CHALLENGE_SKEW_S - 1));
    assert_true(challenge_task_is_fresh(&token, token.time + CHALLENGE_TASK_S));
    assert_false(challenge_task_is_fresh(&token, token.time + CHALLENGE_TASK_S + 1));
}

static void pass_is_valid_until_it_expires_and_for_enough_work(void **state)
{
    const int64_t day = 86400;
    (void)state;
    assert_true(challenge_pass_is_valid(&token, 16, day, token.time - 1));
    assert_false(challenge_pass_is_valid(&token, 16, day, token.time));
    assert_false(challenge_pass_is_valid(&token, 17, day, token.time - 1));
    assert_true(challenge_pass_is_valid(&token, 1, day, token.time - 1));
    assert_true(challenge_pass_is_valid(&token, 16, day, token.time - day - CHALLENGE_SKEW_S));
    assert_false(challenge_pass_is_valid(&token, 16, day, token.time - day - CHALLENGE_SKEW_S - 1));
}

static void task_is_solved_by_digits_whose_hash_begins_with_zeros(void **state)
{
    (void)state;
    /* SHA-256("task3230") begins with 10 zero bits */
    assert_true(challenge_task_is_solved(MK_STR("task"), 10, MK_STR("3230")));
    assert_false(challenge_task_is_solved(MK_STR("task"), 11, MK_STR("3230")));
    assert_true(challenge_task_is_solved(MK_STR("task"), 0, MK_STR("0123456789")));
    assert_false(challenge_task_is_solved(MK_STR("task"), 0, MK_STR("01234567890")));
    assert_false(challenge_task_is_solved(MK_STR("task"), 0, MK_STR("")));
    assert_false(challenge_task_is_solved(MK_STR("task"), 0, MK_STR("1a")));
    assert_false(challenge_task_is_solved(MK_STR("task"), CHALLENGE_BITS_MAX + 1, MK_STR("1")));
    assert_false(challenge_task_is_solved(MK_STR("1234567890123456789012345678901234567890123"), 0,
                                          MK_STR("0123456789"))); /* longer than a token */
}

static void target_on_another_host_is_not_local(void **state)
{
    static const char *const local[] = {
        "/", "/a", "/a//b", "/?q=//x", "/.well-known/x", "/%C3%A4?a=%2F", "/?\\", "/a?b=\\c\\\\d"};
    static const char *const foreign[] = {
        "",    "a",     "//a",   "///a",      "/\\a",  "\\\\a", "http://a/", "/%2fa", "/%5ca",     "/%252fa",
        "/ a", "/a\tb", "/\x7f", "/\xc3\xa4", "/a\\b", "/\n/a", " /a",       "/\\?",  "/a\\b?c=\\"};
    char large[8193];
    (void)state;
    for (size_t i = 0; i < MK_LEN(local); i++)
        assert_true(challenge_target_is_local(mk_str_from_c(local[i])));
    for (size_t i = 0; i < MK_LEN(foreign); i++)
        assert_false(challenge_target_is_local(mk_str_from_c(foreign[i])));
    assert_false(challenge_target_is_local(MK_STR_NULL));
    memset(large, 'a', sizeof large);
    large[0] = '/';
    assert_true(challenge_target_is_local(mk_str_of(large, sizeof large - 1)));
    assert_false(challenge_target_is_local(mk_str_of(large, sizeof large)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(token_has_a_fixed_format),
        cmocka_unit_test(token_is_valid_only_for_its_scope_and_kind),
        cmocka_unit_test(token_with_a_changed_character_is_rejected),
        cmocka_unit_test(token_for_a_host_name_that_is_too_long_is_not_written),
        cmocka_unit_test(task_is_fresh_for_ten_minutes),
        cmocka_unit_test(pass_is_valid_until_it_expires_and_for_enough_work),
        cmocka_unit_test(task_is_solved_by_digits_whose_hash_begins_with_zeros),
        cmocka_unit_test(target_on_another_host_is_not_local)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
