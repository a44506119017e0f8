/* SPDX-License-Identifier: Apache-2.0 */
/* Announces the subscribers of topics to other machines. The test replaces the relay and the task. */
#include "service/topic_announce.h"

#include <duda/memory.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "service/announced_topics.h"
#include "service/topics.h"
#include "unit/test.h"

enum { BATCH = 256, INTERVALS = 60, CALLS = 4096 };

static struct duda_worker_ctx worker_ctx;
static struct duda_ctx d;
static struct duda_task task;
static struct {
    int result; /* of the next calls of the relay */
    unsigned n_calls, n_topics, n_batch[CALLS];
    unsigned interval, end; /* the interval in which the task runs; it is cancelled in the last one */
    void (*on_interval)(void);
} fake;
static void *allocated[CALLS];
static size_t n_allocated;

/* ---- Fakes ---- */

void *duda_alloc(struct duda_ctx *self, size_t size)
{
    (void)self;
    assert_true(n_allocated < CALLS);
    return allocated[n_allocated++] = malloc(size);
}

mk_str duda_strdup(struct duda_ctx *self, mk_str text)
{
    char *copy = duda_alloc(self, text.len + 1);
    memcpy(copy, text.p, text.len);
    return mk_str_of(copy, text.len);
}

size_t duda_arena_mark(struct duda_ctx *self)
{
    (void)self;
    return n_allocated;
}

void duda_arena_rewind(struct duda_ctx *self, size_t mark)
{
    (void)self;
    while (n_allocated > mark)
        free(allocated[--n_allocated]);
}

int duda_sleep(struct duda_ctx *self, uint32_t ms)
{
    (void)self, (void)ms;
    if (++fake.interval > fake.end)
        return -ECANCELED;
    if (fake.on_interval)
        fake.on_interval();
    return 0;
}

int duda_cancelled(struct duda_ctx *self)
{
    (void)self;
    return 0;
}

uint64_t duda_subscriber_counts_sum(const struct duda_subscriber_counts *c, mk_str topic)
{
    (void)c, (void)topic;
    return 7;
}

int duda_task_spawn_sized(struct mk_worker *worker, const struct duda_task *t, size_t size,
                          struct duda_ctx **out)
{
    (void)worker, (void)size;
    task = *t;
    *out = &d;
    return 0;
}

void duda_task_cancel(struct duda_ctx *self)
{
    (void)self;
}

static int announce(struct duda_ctx *self, void *ctx, const struct duda_topic_count *counts, size_t n)
{
    (void)self, (void)ctx;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(counts[i].n, 7);
    assert_true(fake.n_calls < CALLS);
    fake.n_batch[fake.n_calls++] = (unsigned)n;
    fake.n_topics += (unsigned)n;
    return fake.result;
}

/* ---- Helpers ---- */

static void setup(void)
{
    static const struct duda_topic_relay relay = {.announce_subscribers = announce};
    worker_ctx = (struct duda_worker_ctx){.relay = &relay};
    d = (struct duda_ctx){.worker_ctx = &worker_ctx};
    memset(&fake, 0, sizeof fake);
}

static void teardown(void)
{
    duda_announced_topics_free(worker_ctx.announced);
    assert_int_equal(n_allocated, 0);
}

static void change(unsigned begin, unsigned end, int by)
{
    for (unsigned i = begin; i < end; i++) {
        char name[20];
        int n = snprintf(name, sizeof name, "topic %u", i);
        duda_topic_announce_change(&worker_ctx, mk_str_of(name, (size_t)n), by);
    }
}

/* Runs the task for `n` intervals. */
static void run(unsigned n)
{
    fake.n_calls = fake.n_topics = fake.interval = 0;
    fake.end = n;
    assert_non_null(worker_ctx.announcer);
    assert_int_equal(task.fn(&d), 0);
}

/* ---- Tests ---- */

static void announcer_sends_many_topics_at_once(void **state)
{
    (void)state;
    change(0, 600, 1);
    run(1);
    assert_int_equal(fake.n_calls, 3);
    assert_int_equal(fake.n_batch[0], BATCH);
    assert_int_equal(fake.n_topics, 600);
    change(0, 5, 1);
    run(1);
    assert_int_equal(fake.n_calls, 1);
    assert_int_equal(fake.n_topics, 5);
    run(20);
    assert_int_equal(fake.n_topics, 600); /* all are announced again after a while */
}

static void announcer_ends_without_topics(void **state)
{
    (void)state;
    change(0, 10, 1);
    run(1);
    change(0, 10, -1);
    run(100);
    assert_int_equal(fake.n_topics, 10);
    assert_int_equal(fake.interval, 1);
}

static void announcer_repeats_failed_topics_that_have_subscribers(void **state)
{
    (void)state;
    fake.result = -EIO;
    change(0, 10, 1);
    change(3, 10, -1);
    run(1);
    assert_int_equal(fake.n_topics, 10);
    run(4);
    assert_int_equal(fake.n_calls, 4);
    assert_int_equal(fake.n_topics, 4 * 3);
    fake.result = 0;
    run(4);
    assert_int_equal(fake.n_topics, 3);
}

static unsigned n_visited;

static void visit_topics(void)
{
    change(n_visited, n_visited + 1000, 1);
    change(n_visited, n_visited + 1000, -1);
    n_visited += 1000;
}

/* Clients that choose names subscribe to ever new topics while the relay is down. */
static void announcer_forgets_topics_during_an_outage(void **state)
{
    (void)state;
    n_visited = 0;
    fake.result = -EIO;
    change(1000000, 1000010, 1);
    fake.on_interval = visit_topics;
    run(INTERVALS);
    assert_int_equal(n_visited, INTERVALS * 1000);
    fake.on_interval = NULL;
    fake.result = 0;
    run(1);
    assert_in_range(fake.n_topics, 10, DUDA_SUBSCRIBER_TOPICS);
    run(20);
    assert_int_equal(fake.n_topics, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(announcer_sends_many_topics_at_once, setup, teardown),
        fixture_test(announcer_ends_without_topics, setup, teardown),
        fixture_test(announcer_repeats_failed_topics_that_have_subscribers, setup, teardown),
        fixture_test(announcer_forgets_topics_during_an_outage, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
