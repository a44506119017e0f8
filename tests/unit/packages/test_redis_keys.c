/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "redis/key_slot.h"
#include "unit/test.h"

/* Returns the slot of a command whose words are separated by spaces, or -EXDEV. */
static int slot_of(const char *text)
{
    mk_str parts[16], rest = mk_str_from_c(text);
    struct redis_crossslot clash;
    size_t n = 0;
    while ((parts[n] = mk_str_word(&rest)).len)
        n++;
    return redis_command_slot(parts, n, &clash);
}

static int slot(const char *key)
{
    return redis_key_slot(mk_str_from_c(key));
}

/* The values are from the specification and from `redis-cli cluster keyslot`. */
static void redis_key_slot_matches_specification(void **state)
{
    (void)state;
    assert_int_equal(slot("123456789"), 0x31c3);
    assert_int_equal(slot("foo"), 12182);
    assert_int_equal(slot(""), 0);
}

static void redis_key_hash_tag_replaces_key(void **state)
{
    (void)state;
    assert_int_equal(slot("{user1000}.following"), slot("user1000"));
    assert_int_equal(slot("a{user1000}{b}"), slot("user1000"));
    assert_int_equal(slot("foo{{bar}}zap"), slot("{bar"));
    assert_int_not_equal(slot("foo{}{bar}"), slot("bar"));
    assert_int_not_equal(slot("foo{bar"), slot("bar"));
}

static void redis_command_keys_are_found(void **state)
{
    static const char *const of_foo[] = {
        "GET foo",
        "set foo bar",
        "NEWCOMMAND foo bar",
        "MGET foo {foo}2",
        "MSET foo bar {foo}2 qux",
        "EVAL script 1 foo bar",
        "evalsha sha 2 foo {foo} bar",
        "BITOP AND foo {foo}1 {foo}2",
        "OBJECT ENCODING foo",
        "XGROUP CREATE foo bar $",
        "XREAD COUNT 2 STREAMS foo 0",
        "XREADGROUP GROUP g c BLOCK 5 STREAMS foo {foo}2 > >",
        "ZUNION 2 foo {foo}2 WITHSCORES",
        "BLMPOP 1 2 foo {foo}2 LEFT",
    };
    (void)state;
    for (size_t i = 0; i < MK_LEN(of_foo); i++)
        assert_int_equal(slot_of(of_foo[i]), 12182);
}

static void redis_command_without_key(void **state)
{
    static const char *const any[] = {
        "PING",        "publish news text", "SCRIPT LOAD x", "EVAL script 0 foo",
        "EVAL script", "XREAD STREAMS",     "GET",           "EVAL script x foo"};
    (void)state;
    for (size_t i = 0; i < MK_LEN(any); i++)
        assert_int_equal(slot_of(any[i]), REDIS_NO_KEY);
}

/* Covers commands with several keys, and with keys at unusual positions. */
static void redis_command_keys_of_different_slots_are_rejected(void **state)
{
    static const char *const clashes[] = {
        "DEL foo bar",
        "UNLINK foo bar",
        "EXISTS foo bar",
        "TOUCH foo bar",
        "MSETNX foo 1 bar 2",
        "SINTER foo bar",
        "SUNION foo bar",
        "SDIFF foo bar",
        "SINTERSTORE foo bar",
        "SUNIONSTORE foo bar",
        "SDIFFSTORE foo bar",
        "PFCOUNT foo bar",
        "PFMERGE foo bar",
        "RENAME foo bar",
        "RENAMENX foo bar",
        "RPOPLPUSH foo bar",
        "BITOP AND foo bar",
        "EVAL script 2 foo bar",
        "EVALSHA sha 2 foo bar",
        "EVAL_RO script 2 foo bar",
        "EVALSHA_RO sha 2 foo bar",
        "FCALL function 2 foo bar",
        "FCALL_RO function 2 foo bar",
        "ZUNION 2 foo bar",
        "ZINTER 2 foo bar",
        "ZDIFF 2 foo bar",
        "ZINTERCARD 2 foo bar",
        "SINTERCARD 2 foo bar",
        "LMPOP 2 foo bar LEFT",
        "ZMPOP 2 foo bar MIN",
        "BLMPOP 1 2 foo bar LEFT",
        "BZMPOP 1 2 foo bar MIN",
        "XREAD COUNT 1 STREAMS foo bar 0 0",
        "XREADGROUP GROUP g c STREAMS foo bar 0 0",
    };
    (void)state;
    for (size_t i = 0; i < MK_LEN(clashes); i++)
        if (slot_of(clashes[i]) != -EXDEV)
            fail_msg("%s: %d", clashes[i], slot_of(clashes[i]));
}

static void redis_command_arguments_after_keys_are_ignored(void **state)
{
    static const char *const of_foo[] = {
        "MSETNX foo x {foo}2 y",    "EVALSHA sha 1 foo bar",    "EVAL_RO script 1 foo bar",
        "EVALSHA_RO sha 1 foo bar", "FCALL function 1 foo bar", "FCALL_RO function 1 foo bar",
        "ZUNION 1 foo WEIGHTS",     "ZINTER 1 foo WEIGHTS",     "ZDIFF 1 foo WITHSCORES",
        "ZINTERCARD 1 foo LIMIT",   "SINTERCARD 1 foo LIMIT",   "LMPOP 1 foo LEFT",
        "ZMPOP 1 foo MIN",          "BZMPOP 9 1 foo MIN",       "XINFO STREAM foo FULL",
        "MEMORY USAGE foo SAMPLES"};
    (void)state;
    for (size_t i = 0; i < MK_LEN(of_foo); i++)
        if (slot_of(of_foo[i]) != 12182)
            fail_msg("%s: %d", of_foo[i], slot_of(of_foo[i]));
}

static void redis_server_commands_have_no_key(void **state)
{
    static const char *const of_any[] = {
        "PING",    "ECHO",    "PUBLISH",   "PUBSUB",   "SCRIPT",  "FUNCTION", "INFO",    "TIME",   "DBSIZE",
        "KEYS",    "SCAN",    "RANDOMKEY", "FLUSHALL", "FLUSHDB", "CLUSTER",  "COMMAND", "CONFIG", "ACL",
        "LATENCY", "SLOWLOG", "WAIT",      "WAITAOF",  "ROLE",    "LASTSAVE", "LOLWUT",  "DEBUG"};
    char text[40];
    (void)state;
    for (size_t i = 0; i < MK_LEN(of_any); i++) {
        (void)snprintf(text, sizeof text, "%s foo", of_any[i]);
        if (slot_of(text) != REDIS_NO_KEY)
            fail_msg("%s: %d", text, slot_of(text));
    }
}

static void redis_crossslot_error_names_keys(void **state)
{
    const mk_str parts[] = {MK_STR("MSET"), MK_STR("foo"), MK_STR("x"), MK_STR("bar"), MK_STR("y")};
    struct redis_crossslot clash;
    (void)state;
    assert_int_equal(redis_command_slot(parts, 5, &clash), -EXDEV);
    assert_str(clash.a, "foo");
    assert_str(clash.b, "bar");
    assert_int_equal(clash.slot_a, 12182);
    assert_int_equal(clash.slot_b, 5061);
    assert_int_equal(slot_of("EVAL s 999999999999999999999 foo bar"), -EXDEV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redis_key_slot_matches_specification),
        cmocka_unit_test(redis_key_hash_tag_replaces_key),
        cmocka_unit_test(redis_command_keys_are_found),
        cmocka_unit_test(redis_command_without_key),
        cmocka_unit_test(redis_command_keys_of_different_slots_are_rejected),
        cmocka_unit_test(redis_command_arguments_after_keys_are_ignored),
        cmocka_unit_test(redis_server_commands_have_no_key),
        cmocka_unit_test(redis_crossslot_error_names_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
