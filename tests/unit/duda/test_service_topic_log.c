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
    return duda_topic_log_append(&messages, mk_str_from_c(topic), keep, 1, message, NOW, &prev, &id);
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
    int e = duda_topic_log_read(&messages, mk_str_from_c(topic), at, &out, &kind, &found, &has_gap);
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

static void topic_log_full_memory_drops_the_least_recent_topic(void **state)
{
    static char content[4000];
    struct duda_topic_id at;
    (void)state;
    memset(content, 'x', sizeof content);
    append("old", 10, "one");
    const struct duda_topic_id old = id;
    append("new", 10, "one");
    const struct duda_topic_id new = id;
    for (int i = 0; i < 5; i++)
        assert_int_equal(append_n("new", 100, mk_str_of(content, sizeof content)), 0);
    at = old;
    assert_int_equal(next("old", &at), 0);
    while (at = old, next("old", &at) == 0)
        assert_int_equal(append_n("new", 100, mk_str_of(content, sizeof content)), 0);
    at = old;
    assert_int_equal(next("old", &at), 10);
    for (int i = 0; i < 100; i++) /* the only topic drops its own messages */
        assert_int_equal(append_n("new", 100, mk_str_of(content, sizeof content)), 0);
    at = new;
    assert_int_equal(next("new", &at), 11);
    append("old", 10, "two");
    assert_true(id.epoch > old.epoch); /* IDs of a dropped topic do not return */
    at = old;
    assert_int_equal(next("old", &at), 11);
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
        fixture_test(topic_log_unknown_id_is_a_gap, setup, teardown),
        fixture_test(topic_log_stores_messages_of_any_length, setup, teardown),
        fixture_test(topic_log_full_memory_drops_the_least_recent_topic, setup, teardown),
        fixture_test(topic_log_many_topics_leave_the_latest, setup, teardown),
        fixture_test(topic_log_survives_a_dead_process, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
