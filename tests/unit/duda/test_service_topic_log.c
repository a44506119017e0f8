/* SPDX-License-Identifier: Apache-2.0 */
#include "service/topic_log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/test.h"

enum { SIZE = 64 << 10, NOW = 1000, TEXT_MAX = 31 << 10 };

static struct duda_topic_log messages;
static void *memory;
static struct duda_topic_id prev, id;
static char text[TEXT_MAX];
static uint64_t now = NOW;

static void setup(void)
{
    memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    assert_int_equal(duda_topic_log_init(&messages, memory, SIZE), 0);
}

static void teardown(void)
{
    munmap(memory, SIZE);
}

static int append_n(const char *topic, uint32_t keep, mk_str message)
{
    const struct duda_topic_log_rule rule = {.keep = keep};
    return duda_topic_log_append(&messages, mk_str_from_c(topic), &rule, 1, message, NOW, &prev, &id);
}

static void append(const char *topic, uint32_t keep, const char *message)
{
    assert_int_equal(append_n(topic, keep, mk_str_from_c(message)), 0);
}

/* Reads the message after *at, which then becomes its ID. Returns what duda_topic_log_read() returns, plus 10
 * for a gap. */
static int next(const char *topic, struct duda_topic_id *at)
{
    struct mk_buf out = mk_buf_fixed(text, sizeof text);
    unsigned char kind = 0;
    bool has_gap;
    struct duda_topic_id found;
    int e = duda_topic_log_read(&messages, mk_str_from_c(topic), at, now, &out, &kind, &found, &has_gap);
    assert_false(out.failed);
    assert_true(e != 1 || kind == 1);
    text[out.len < sizeof text ? out.len : sizeof text - 1] = '\0';
    *at = found;
    return e + (has_gap ? 10 : 0);
}

static void topic_log_returns_messages_in_order(void **state)
{
    struct duda_topic_id at = {0};
    (void)state;
    assert_int_equal(next("a", &at), 0);
    append("a", 10, "one");
    assert_true(duda_topic_id_is_none(&prev) && id.epoch == NOW && id.number == 1);
    append("b", 10, "other");
    append("a", 10, "two");
    assert_true(prev.number == 1 && id.number == 2);
    struct duda_topic_id last;
    assert_int_equal(duda_topic_log_last(&messages, MK_STR("a"), &last), 0);
    assert_true(duda_topic_id_eq(&last, &id));
    assert_int_equal(duda_topic_log_last(&messages, MK_STR("none"), &last), 0);
    assert_true(duda_topic_id_is_none(&last));
    assert_int_equal(next("a", &at), 1);
    assert_string_equal(text, "one");
    assert_int_equal(next("a", &at), 1);
    assert_string_equal(text, "two");
    assert_int_equal(next("a", &at), 0);
    assert_true(duda_topic_id_eq(&at, &id));
}

static void topic_log_drops_messages_beyond_keep_and_reports_the_gap(void **state)
{
    struct duda_topic_id first, at;
    (void)state;
    append("a", 2, "one");
    first = id;
    append("a", 2, "two");
    at = first;
    assert_int_equal(next("a", &at), 1);
    append("a", 2, "three");
    at = first;
    assert_int_equal(next("a", &at), 1);
    assert_string_equal(text, "two");
    append("a", 2, "four");
    at = first;
    assert_int_equal(next("a", &at), 11);
    assert_string_equal(text, "three");
    at = (struct duda_topic_id){0};
    assert_int_equal(next("a", &at), 1); /* a new reader misses nothing */
    append("a", 1, "five");
    at = first;
    assert_int_equal(next("a", &at), 11);
    assert_string_equal(text, "five");
}

static void append_with_age(const char *topic, uint32_t keep_s, const char *message)
{
    const struct duda_topic_log_rule rule = {.keep = 10, .keep_s = keep_s};
    assert_int_equal(duda_topic_log_append(&messages, mk_str_from_c(topic), &rule, 1, mk_str_from_c(message),
                                           now, &prev, &id),
                     0);
}

static void topic_log_drops_messages_that_are_too_old(void **state)
{
    struct duda_topic_id first, last, at;
    (void)state;
    now = NOW;
    append_with_age("a", 60, "one");
    first = id;
    now += 50000;
    append_with_age("a", 60, "two");
    last = id;
    now += 10000;
    at = (struct duda_topic_id){0};
    assert_int_equal(next("a", &at), 1);
    assert_string_equal(text, "one"); /* exactly 60 seconds old */
    now += 1000;
    at = (struct duda_topic_id){0};
    assert_int_equal(next("a", &at), 1);
    assert_string_equal(text, "two");
    at = first;
    assert_int_equal(next("a", &at), 1); /* the reader has got the dropped message */
    at = (struct duda_topic_id){first.epoch, 0};
    now += 50000;
    assert_int_equal(next("a", &at), 10); /* both are too old */
    at = last;
    assert_int_equal(next("a", &at), 0);
    append_with_age("a", 60, "three");
    assert_true(duda_topic_id_eq(&prev, &last));
    assert_int_equal(next("a", &last), 1);
    assert_string_equal(text, "three");
    now = NOW;
}

static void topic_log_unknown_id_is_a_gap(void **state)
{
    struct duda_topic_id at = {NOW, 1};
    (void)state;
    assert_int_equal(next("a", &at), 10);
    append("a", 2, "one");
    at = (struct duda_topic_id){NOW, 99};
    assert_int_equal(next("a", &at), 11);
    at = (struct duda_topic_id){NOW - 1, 1};
    assert_int_equal(next("a", &at), 11);
}

static void topic_log_stores_messages_of_any_length(void **state)
{
    static char content[TEXT_MAX];
    struct duda_topic_id at = {0};
    (void)state;
    for (size_t len = 0; len < 1000; len += 1 + len / 50) {
        memset(content, 'a' + (int)(len % 26), len);
        assert_int_equal(append_n("a", 1000, mk_str_of(content, len)), 0);
        assert_int_equal(next("a", &at), 1);
        assert_true(strlen(text) == len && memcmp(text, content, len) == 0);
    }
    memset(content, 'x', sizeof content);
    assert_int_equal(append_n("a", 1000, mk_str_of(content, sizeof content)), 0);
    assert_int_equal(append_n("a", 1000, mk_str_of(content, SIZE)), -EMSGSIZE);
}

/* Counts the messages that a topic keeps. */
static size_t count_kept(const char *topic)
{
    struct duda_topic_id at = {0};
    size_t n = 0;
    while (next(topic, &at) == 1)
        n++;
    return n;
}

static void append_to_small_topic(int i)
{
    char name[32];
    snprintf(name, sizeof name, "small %d", i);
    append(name, 3, "news");
}

static void topic_log_flood_into_one_topic_leaves_the_others(void **state)
{
    static char content[4000];
    struct duda_topic_id at;
    (void)state;
    memset(content, 'x', sizeof content);
    append("quiet", 10, "one");
    const struct duda_topic_id quiet = id;
    append("quiet", 10, "two");
    append("loud", UINT32_MAX, "one");
    const struct duda_topic_id loud = id;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(append_n("loud", UINT32_MAX, mk_str_of(content, i % 2 ? 10 : sizeof content)), 0);
    at = quiet;
    assert_int_equal(next("quiet", &at), 1);
    assert_string_equal(text, "two");
    at = loud;
    assert_int_equal(next("loud", &at), 11); /* the loud topic has dropped its own messages */
    assert_in_range(count_kept("loud"), 4, 8);
}

static void topic_log_floods_into_several_topics_leave_a_smaller_one(void **state)
{
    static char content[2000];
    (void)state;
    memset(content, 'x', sizeof content);
    append("quiet", 10, "one");
    for (int i = 0; i < 1000; i++) {
        char name[32];
        snprintf(name, sizeof name, "loud %d", i % 7);
        assert_int_equal(append_n(name, 1000, mk_str_of(content, sizeof content)), 0);
    }
    assert_int_equal(count_kept("quiet"), 1);
}

static void topic_log_flood_of_small_topics_leaves_a_large_one(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++)
        append("large", 50, "news");
    for (int i = 0; i < 5000; i++)
        append_to_small_topic(i);
    assert_int_equal(count_kept("large"), 50);
    assert_int_equal(count_kept("small 4999"), 1);
    assert_int_equal(count_kept("small 4950"), 1);
    assert_int_equal(count_kept("small 4000"), 0);
}

static void topic_log_full_memory_drops_the_least_recent_of_similar_topics(void **state)
{
    struct duda_topic_id at;
    (void)state;
    append("old", 10, "one");
    const struct duda_topic_id old = id;
    append("new", 10, "one");
    for (int i = 0; i < 300; i++) {
        append_to_small_topic(i);
        append("new", 1, "again");
    }
    assert_int_equal(count_kept("new"), 1);
    at = old;
    assert_int_equal(next("old", &at), 10);
    append("old", 10, "two");
    assert_true(id.epoch > old.epoch); /* IDs of a dropped topic do not return */
    at = old;
    assert_int_equal(next("old", &at), 11);
}

/* Messages of a quarter of the memory or more replace each other. */
static void topic_log_huge_messages_fit_alone(void **state)
{
    static char content[TEXT_MAX];
    (void)state;
    memset(content, 'x', sizeof content);
    append("quiet", 10, "one");
    for (int i = 0; i < 20; i++)
        assert_int_equal(append_n(i % 2 ? "a" : "b", 10, mk_str_of(content, sizeof content)), 0);
    assert_int_equal(count_kept("a"), 1);
    assert_int_equal(count_kept("quiet"), 1);
}

static void topic_log_finds_the_message_after_each_id(void **state)
{
    (void)state;
    for (uint64_t last = 1; last <= 300; last++) {
        uint32_t keep = 1 + (uint32_t)(last * 7 % 40);
        append("a", keep, "news");
        uint64_t first = last - count_kept("a") + 1;
        assert_true(last - first < keep);
        for (uint64_t after = 1; after <= last; after++) {
            struct duda_topic_id at = {id.epoch, after};
            assert_int_equal(next("a", &at), (after < last) + (after + 1 < first ? 10 : 0));
            assert_true(at.number == (after == last ? last : after + 1 < first ? first : after + 1));
        }
    }
}

/* A search from the first message would take N * N / 2 steps. */
static void topic_log_replay_takes_few_steps_per_message(void **state)
{
    enum { N = 16000, LARGE = 17 << 20 };
    struct duda_topic_id at = {0};
    void *large = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(large != MAP_FAILED);
    assert_int_equal(duda_topic_log_init(&messages, large, LARGE), 0);
    for (int i = 0; i < N; i++)
        append("a", N, "news");
    uint64_t steps = duda_topic_log_steps(&messages);
    assert_in_range(steps, 1, 20 * N);
    for (int i = 0; i < N; i++)
        assert_int_equal(next("a", &at), 1);
    assert_int_equal(next("a", &at), 0);
    assert_in_range(duda_topic_log_steps(&messages) - steps, 1, 50 * N);
    munmap(large, LARGE);
}

static void topic_log_many_topics_leave_the_latest(void **state)
{
    struct duda_topic_id at;
    (void)state;
    for (int i = 0; i < 5000; i++) {
        char name[32];
        snprintf(name, sizeof name, "topic %d", i);
        append(name, 3, "news");
        at = (struct duda_topic_id){0};
        assert_int_equal(next(name, &at), 1);
    }
    at = (struct duda_topic_id){0};
    assert_int_equal(next("topic 0", &at), 0);
}

/* A process dies while it holds the lock of the log. */
static void topic_log_survives_a_dead_process(void **state)
{
    struct duda_topic_id at;
    (void)state;
    append("a", 10, "one");
    at = id;
    pid_t child = fork();
    if (child == 0) {
        mk_str bad = {.p = NULL, .len = 200}; /* the copy of the text crashes */
        signal(SIGSEGV, SIG_DFL);
        (void)append_n("a", 10, bad);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(next("a", &at), 10);
    append("a", 10, "two");
    at = (struct duda_topic_id){0};
    assert_int_equal(next("a", &at), 1);
    assert_string_equal(text, "two");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(topic_log_returns_messages_in_order, setup, teardown),
        fixture_test(topic_log_drops_messages_beyond_keep_and_reports_the_gap, setup, teardown),
        fixture_test(topic_log_drops_messages_that_are_too_old, setup, teardown),
        fixture_test(topic_log_unknown_id_is_a_gap, setup, teardown),
        fixture_test(topic_log_stores_messages_of_any_length, setup, teardown),
        fixture_test(topic_log_flood_into_one_topic_leaves_the_others, setup, teardown),
        fixture_test(topic_log_floods_into_several_topics_leave_a_smaller_one, setup, teardown),
        fixture_test(topic_log_flood_of_small_topics_leaves_a_large_one, setup, teardown),
        fixture_test(topic_log_full_memory_drops_the_least_recent_of_similar_topics, setup, teardown),
        fixture_test(topic_log_huge_messages_fit_alone, setup, teardown),
        fixture_test(topic_log_finds_the_message_after_each_id, setup, teardown),
        fixture_test(topic_log_replay_takes_few_steps_per_message, setup, teardown),
        fixture_test(topic_log_many_topics_leave_the_latest, setup, teardown),
        fixture_test(topic_log_survives_a_dead_process, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
