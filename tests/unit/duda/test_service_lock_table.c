/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of handlers that wait for a lock: their order, and handlers that leave a queue early. */
#include "service/lock_table.h"

#include <stdio.h>

#include "unit/test.h"

enum { MANY = 2000 };

static struct duda_lock_table *locks;
static struct duda_lock_waiter claims[MANY];
static unsigned n_waits;
static struct duda_lock_waiter *last;

static void setup(void)
{
    n_waits = 0;
    locks = duda_lock_table_new();
    assert_non_null(locks);
}

static void teardown(void)
{
    duda_lock_table_free(locks);
}

static void on_lock_granted(void *owner)
{
    last = owner;
    n_waits++;
}

static struct duda_lock_waiter *enqueue(unsigned i, const char *name)
{
    claims[i] = (struct duda_lock_waiter){.owner = &claims[i], .on_lock_granted = on_lock_granted};
    assert_int_equal(duda_lock_table_enqueue(locks, mk_str_from_c(name), &claims[i]), 0);
    return &claims[i];
}

static void dequeue(unsigned i)
{
    duda_lock_table_dequeue(locks, &claims[i]);
}

static void lock_table_is_fifo(void **state)
{
    (void)state;
    assert_true(duda_lock_waiter_has_lock(enqueue(0, "a")));
    assert_true(duda_lock_waiter_has_lock(enqueue(1, "b")));
    for (unsigned i = 2; i < 5; i++)
        assert_false(duda_lock_waiter_has_lock(enqueue(i, "a")));
    dequeue(1);
    assert_int_equal(n_waits, 0);
    dequeue(0);
    for (unsigned i = 2; i < 5; i++) {
        assert_int_equal(n_waits, i - 1);
        assert_ptr_equal(last, &claims[i]);
        assert_true(duda_lock_waiter_has_lock(&claims[i]));
        assert_str(duda_lock_waiter_name(&claims[i]), "a");
        dequeue(i);
    }
    assert_int_equal(n_waits, 3);
    assert_true(duda_lock_waiter_has_lock(enqueue(0, "a")));
    dequeue(0);
}

static void lock_table_waiter_may_leave(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++)
        enqueue(i, "a");
    dequeue(4);
    dequeue(2);
    enqueue(4, "a"); /* handler 4 now waits after the others */
    assert_int_equal(n_waits, 0);
    dequeue(0);
    assert_ptr_equal(last, &claims[1]);
    dequeue(1);
    assert_ptr_equal(last, &claims[3]);
    dequeue(3);
    assert_ptr_equal(last, &claims[4]);
    dequeue(4);
    assert_int_equal(n_waits, 3);
}

static void lock_table_names_are_independent(void **state)
{
    char name[32];
    (void)state;
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "order %u", i / 2);
        assert_int_equal(duda_lock_waiter_has_lock(enqueue(i, name)), i % 2 == 0);
    }
    for (unsigned i = 0; i < MANY; i++)
        dequeue(i);
    assert_int_equal(n_waits, MANY / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(lock_table_is_fifo, setup, teardown),
        fixture_test(lock_table_waiter_may_leave, setup, teardown),
        fixture_test(lock_table_names_are_independent, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
