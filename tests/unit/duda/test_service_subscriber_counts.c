/* SPDX-License-Identifier: Apache-2.0 */
#include "service/subscriber_counts.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/test.h"

enum { WORKERS = 3 };

static struct duda_subscriber_counts_memory *memory;
static struct duda_crash_table *crash_table;
static struct duda_subscriber_counts counts[WORKERS];
static struct duda_crash_slot *slots[WORKERS];

/* The tests map the memory themselves. */
void *mk_config_shared(struct mk_config *config, const char *name, size_t size)
{
    (void)config, (void)name, (void)size;
    return NULL;
}

static void *map(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    return p;
}

static void setup(void)
{
    memory = map(sizeof *memory);
    crash_table = map(sizeof *crash_table);
    duda_subscriber_counts_init(memory);
    for (unsigned i = 0; i < WORKERS; i++) {
        slots[i] = duda_crash_table_acquire_slot(crash_table, i);
        duda_subscriber_counts_open(&counts[i], memory, crash_table, slots[i]);
    }
}

static void teardown(void)
{
    munmap(memory, sizeof *memory);
    munmap(crash_table, sizeof *crash_table);
}

static mk_str number(unsigned i)
{
    static char text[16];
    int n = snprintf(text, sizeof text, "%u", i);
    return mk_str_of(text, (size_t)n);
}

static void subscriber_counts_sum_all_workers(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WORKERS; i++)
        for (unsigned k = 0; k <= i; k++)
            assert_true(duda_subscriber_counts_add(&counts[i], MK_STR("a")));
    assert_true(duda_subscriber_counts_add(&counts[1], MK_STR("b")));
    for (unsigned i = 0; i < WORKERS; i++) {
        assert_int_equal(duda_subscriber_counts_sum(&counts[i], MK_STR("a")), 6);
        assert_int_equal(duda_subscriber_counts_sum(&counts[i], MK_STR("b")), 1);
        assert_int_equal(duda_subscriber_counts_sum(&counts[i], MK_STR("c")), 0);
    }
    duda_subscriber_counts_remove(&counts[1], MK_STR("b"));
    duda_subscriber_counts_remove(&counts[2], MK_STR("a"));
    assert_int_equal(duda_subscriber_counts_sum(&counts[0], MK_STR("b")), 0);
    assert_int_equal(duda_subscriber_counts_sum(&counts[0], MK_STR("a")), 5);
}

static void subscriber_counts_reuse_entries_of_topics_without_subscribers(void **state)
{
    (void)state;
    for (unsigned i = 0; i < DUDA_SUBSCRIBER_TOPICS; i++)
        assert_true(duda_subscriber_counts_add(&counts[0], number(i)));
    assert_false(duda_subscriber_counts_add(&counts[0], MK_STR("one more")));
    assert_true(duda_subscriber_counts_add(&counts[0], number(7)));
    assert_int_equal(duda_subscriber_counts_sum(&counts[1], number(7)), 2);
    duda_subscriber_counts_remove(&counts[0], number(8));
    assert_true(duda_subscriber_counts_add(&counts[0], MK_STR("one more")));
    for (unsigned i = 0; i < DUDA_SUBSCRIBER_TOPICS; i++)
        assert_int_equal(duda_subscriber_counts_sum(&counts[1], number(i)), i == 7 ? 2 : i == 8 ? 0 : 1);
    assert_int_equal(duda_subscriber_counts_sum(&counts[1], MK_STR("one more")), 1);
}

static void subscriber_counts_of_a_dead_worker_disappear(void **state)
{
    (void)state;
    assert_true(duda_subscriber_counts_add(&counts[0], MK_STR("a")));
    pid_t pid = fork();
    if (pid == 0) {
        struct duda_subscriber_counts child;
        duda_subscriber_counts_open(&child, memory, crash_table,
                                    duda_crash_table_acquire_slot(crash_table, 9));
        for (int i = 0; i < 5; i++)
            (void)duda_subscriber_counts_add(&child, MK_STR("a"));
        kill(getpid(), SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
    assert_int_equal(duda_subscriber_counts_sum(&counts[0], MK_STR("a")), 6);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(duda_subscriber_counts_sum(&counts[0], MK_STR("a")), 1);
    struct duda_crash_slot *slot = duda_crash_table_take_dead_slot(crash_table, 9);
    assert_non_null(slot);
    assert_int_equal(duda_subscriber_counts_sum(&counts[0], MK_STR("a")), 1);
    duda_crash_slot_release(slot);
    struct duda_subscriber_counts next;
    duda_subscriber_counts_open(&next, memory, crash_table, duda_crash_table_acquire_slot(crash_table, 9));
    assert_true(duda_subscriber_counts_add(&next, MK_STR("b")));
    assert_int_equal(duda_subscriber_counts_sum(&next, MK_STR("a")), 1);
}

/* Dies between two stores of a function, where only a part of the row is written. */
static void subscriber_counts_of_an_interrupted_worker_are_not_adopted(void **state)
{
    (void)state;
    const size_t row = (size_t)(slots[0] - &crash_table->crash_slots[0][0]);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), half = sizeof memory->rows[row] / 2;
    for (unsigned i = 0; i < 200; i++)
        assert_true(duda_subscriber_counts_add(&counts[0], number(i)));
    assert_int_equal(memory->pids[row], getpid());
    pid_t pid = fork();
    if (pid == 0) { /* the next worker, which cannot write the second half of the row */
        char *middle = (char *)&memory->rows[row] + half;
        middle += page - (uintptr_t)middle % page;
        mprotect(middle, half - page, PROT_READ);
        signal(SIGSEGV, _exit);
        signal(SIGBUS, _exit);
        duda_subscriber_counts_open(&counts[0], memory, crash_table, slots[0]);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_not_equal(status, 0);
    duda_subscriber_counts_open(&counts[0], memory, crash_table, slots[0]);
    assert_true(duda_subscriber_counts_add(&counts[0], MK_STR("b")));
    for (unsigned i = 0; i < 200; i++)
        assert_int_equal(duda_subscriber_counts_sum(&counts[1], number(i)), 0);
    assert_int_equal(duda_subscriber_counts_sum(&counts[1], MK_STR("b")), 1);
}

static size_t count_entries(const struct duda_subscriber_row *row)
{
    size_t n = 0;
    for (size_t i = 0; i < DUDA_SUBSCRIBER_TOPICS; i++)
        n += row->topics[i].hash != 0;
    return n;
}

/* The length of a search is that of the topics in use, not of all topics that were ever used. */
static void subscriber_counts_release_entries(void **state)
{
    (void)state;
    for (unsigned begin = 0; begin < 10000; begin += 500) {
        for (unsigned i = begin; i < begin + 500; i++)
            assert_true(duda_subscriber_counts_add(&counts[0], number(i)));
        for (unsigned i = begin; i < begin + 500; i++)
            duda_subscriber_counts_remove(&counts[0], number(i));
        assert_int_equal(count_entries(counts[0].own), 0);
    }
    for (unsigned i = 0; i < DUDA_SUBSCRIBER_TOPICS; i++)
        assert_true(duda_subscriber_counts_add(&counts[0], number(i)));
    for (unsigned i = 0; i < DUDA_SUBSCRIBER_TOPICS; i += 2)
        duda_subscriber_counts_remove(&counts[0], number(i));
    for (unsigned i = 0; i < DUDA_SUBSCRIBER_TOPICS; i++)
        assert_int_equal(duda_subscriber_counts_sum(&counts[1], number(i)), i % 2);
    for (unsigned i = 1; i < DUDA_SUBSCRIBER_TOPICS; i += 2)
        duda_subscriber_counts_remove(&counts[0], number(i));
    assert_int_equal(count_entries(counts[0].own), 0);
}

static void subscriber_counts_without_a_crash_slot_count_nothing(void **state)
{
    struct duda_subscriber_counts none;
    (void)state;
    duda_subscriber_counts_open(&none, memory, crash_table, NULL);
    assert_false(duda_subscriber_counts_add(&none, MK_STR("a")));
    assert_int_equal(duda_subscriber_counts_sum(&none, MK_STR("a")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(subscriber_counts_sum_all_workers, setup, teardown),
        fixture_test(subscriber_counts_reuse_entries_of_topics_without_subscribers, setup, teardown),
        fixture_test(subscriber_counts_of_a_dead_worker_disappear, setup, teardown),
        fixture_test(subscriber_counts_of_an_interrupted_worker_are_not_adopted, setup, teardown),
        fixture_test(subscriber_counts_release_entries, setup, teardown),
        fixture_test(subscriber_counts_without_a_crash_slot_count_nothing, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
