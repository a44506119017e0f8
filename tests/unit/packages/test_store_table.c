/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <store/table.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/test.h"

enum { SIZE = 1 << 20, NOW = 1000 };

static struct store_table make(void)
{
    struct store_table t = {0};
    void *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_int_equal(store_table_init(&t, memory, SIZE), 0);
    return t;
}

static void drop(struct store_table *t)
{
    munmap(t->memory, SIZE);
}

static void *buf_of(void *ctx, size_t size)
{
    static char buffer[STORE_VALUE_MAX + 1];
    const bool *has_room = ctx;
    return *has_room && size <= sizeof buffer ? buffer : NULL;
}

static mk_str value_at(const struct store_table *t, const char *key, uint64_t now)
{
    mk_str value;
    int e = store_table_get(t, mk_str_from_c(key), now, buf_of, &(bool){true}, &value);
    assert_true(e == 0 || e == -ENOENT);
    return e ? MK_STR("none") : value;
}

static mk_str numbered(char buffer[32], unsigned i)
{
    struct mk_buf b = mk_buf_fixed(buffer, 32);
    mk_buf_addf(&b, "key%u", i);
    mk_buf_add_char(&b, '\0'); /* value_at() takes a C string */
    return mk_str_of(buffer, b.len - 1);
}

/* Blocks without entries take no physical memory. */
static void store_table_init_leaves_blocks_untouched(void **state)
{
    (void)state;
    struct store_table t = make();
    unsigned char resident[SIZE / 4096] = {0}; /* enough for any page size */
    size_t n = 0;
    assert_int_equal(mincore(t.memory, SIZE, resident), 0);
    for (size_t i = 0; i < sizeof resident; i++)
        n += resident[i] & 1;
    assert_in_range(n, 1, 2 * STORE_SHARDS);
    drop(&t);
}

static void store_table_reader_without_memory_leaves_no_lock(void **state)
{
    struct store_table t = make();
    mk_str value;
    (void)state;
    assert_int_equal(store_table_set(&t, MK_STR("a"), MK_STR("1"), 1, 0), 0);
    assert_int_equal(store_table_get(&t, MK_STR("a"), 1, buf_of, &(bool){false}, &value), -ENOMEM);
    assert_true(mk_str_eq(value_at(&t, "a", 1), MK_STR("1")));
    drop(&t);
}

static void store_table_keeps_values_of_any_length(void **state)
{
    static char text[STORE_VALUE_MAX];
    struct store_table t = make();
    (void)state;
    memset(text, 'v', sizeof text);
    for (size_t n = 0; n < 1200; n += 13) {
        text[n ? n - 1 : 0] = 'e';
        assert_int_equal(store_table_set(&t, MK_STR("k"), mk_str_of(text, n), NOW, 0), 0);
        mk_str got = value_at(&t, "k", NOW);
        assert_true(mk_str_eq(got, mk_str_of(text, n)));
        text[n ? n - 1 : 0] = 'v';
    }
    assert_int_equal(store_table_set(&t, MK_STR("k"), mk_str_of(text, sizeof text), NOW, 0), -EMSGSIZE);
    drop(&t);
}

static void store_table_add_and_replace_check_existence(void **state)
{
    struct store_table t = make();
    const mk_str k = MK_STR("k");
    (void)state;
    assert_int_equal(store_table_replace(&t, k, MK_STR("1"), NOW, 0), -ENOENT);
    assert_int_equal(store_table_add(&t, 0, k, MK_STR("1"), NOW, 0), 0);
    assert_int_equal(store_table_add(&t, 0, k, MK_STR("2"), NOW, 0), -EEXIST);
    assert_int_equal(store_table_replace(&t, k, MK_STR("2"), NOW, 0), 0);
    assert_str(value_at(&t, "k", NOW), "2");
    assert_int_equal(store_table_delete_if(&t, k, MK_STR("1"), NOW), -ESTALE);
    assert_int_equal(store_table_delete_if(&t, k, MK_STR("2"), NOW), 0);
    assert_int_equal(store_table_delete_if(&t, k, MK_STR_NULL, NOW), -ENOENT);
    assert_str(value_at(&t, "k", NOW), "none");
    drop(&t);
}

static void store_table_entries_expire(void **state)
{
    struct store_table t = make();
    (void)state;
    assert_int_equal(store_table_add(&t, 0, MK_STR("k"), MK_STR("1"), NOW, NOW + 10), 0);
    assert_str(value_at(&t, "k", NOW + 9), "1");
    assert_int_equal(store_table_add(&t, 0, MK_STR("k"), MK_STR("2"), NOW + 10, 0), 0);
    assert_str(value_at(&t, "k", NOW + 100), "2");
    drop(&t);
}

static void store_table_incr_counts_and_expires(void **state)
{
    struct store_table t = make();
    int64_t sum;
    (void)state;
    assert_int_equal(store_table_incr(&t, MK_STR("n"), 5, NOW, NOW + 10, &sum), 0);
    assert_int_equal(store_table_incr(&t, MK_STR("n"), -7, NOW + 9, NOW + 99, &sum), 0);
    assert_int_equal(sum, -2);
    assert_int_equal(store_table_incr(&t, MK_STR("n"), 1, NOW + 10, 0, &sum), 0);
    assert_int_equal(sum, 1);
    assert_int_equal(store_table_incr(&t, MK_STR("n"), INT64_MAX, NOW, 0, &sum), -EDOM);
    assert_int_equal(store_table_set(&t, MK_STR("t"), MK_STR("x"), NOW, 0), 0);
    assert_int_equal(store_table_incr(&t, MK_STR("t"), 1, NOW, 0, &sum), -EDOM);
    drop(&t);
}

static void store_table_full_evicts_values_but_no_locks(void **state)
{
    struct store_table t = make();
    char buffer[32], text[1000];
    int e = 0;
    (void)state;
    memset(text, 'x', sizeof text);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(store_table_add(&t, 0, numbered(buffer, i), MK_STR("lock"), NOW, NOW + 1000), 0);
    for (unsigned i = 1000; i < 6000; i++)
        assert_int_equal(store_table_set(&t, numbered(buffer, i), mk_str_of(text, sizeof text), NOW, 0), 0);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(store_table_add(&t, 0, numbered(buffer, i), MK_STR("lock"), NOW, 0), -EEXIST);
    assert_str(value_at(&t, "key1000", NOW), "none");
    for (unsigned i = 10000; i < 20000 && !e; i++)
        e = store_table_add(&t, 0, numbered(buffer, i), MK_STR("lock"), NOW, NOW + 1000);
    assert_int_equal(e, -ENOSPC);
    /* Once the entries have expired, there is space again. */
    for (unsigned i = 20000; i < 21000; i++)
        assert_int_equal(store_table_add(&t, 0, numbered(buffer, i), MK_STR("lock"), NOW + 1000, 0), 0);
    drop(&t);
}

static void store_table_full_evicts_first_to_expire(void **state)
{
    struct store_table t = make();
    char buffer[32];
    int64_t sum;
    unsigned lost = 0;
    (void)state;
    t.evicts_persistent = true;
    for (unsigned i = 0; i < 200; i++)
        assert_int_equal(store_table_incr(&t, numbered(buffer, i), 7, NOW, NOW + 100000, &sum), 0);
    for (unsigned i = 1000; i < 60000; i++)
        assert_int_equal(store_table_incr(&t, numbered(buffer, i), 1, NOW, NOW + 50000, &sum), 0);
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(store_table_incr(&t, numbered(buffer, i), 0, NOW, NOW + 100000, &sum), 0);
        lost += sum != 7;
    }
    assert_true(lost < 20);
    /* An entry that grows is not evicted to make space for itself. */
    assert_int_equal(store_table_set(&t, numbered(buffer, 1), mk_str_of(buffer, 20), NOW, NOW + 1), 0);
    assert_int_equal(store_table_set(&t, numbered(buffer, 1), MK_STR("x"), NOW, NOW + 1), 0);
    drop(&t);
}

static void store_table_full_evicts_values_first(void **state)
{
    struct store_table t = make();
    char buffer[32];
    int64_t sum;
    (void)state;
    t.evicts_persistent = true;
    for (unsigned i = 0; i < 300; i++)
        assert_int_equal(store_table_incr(&t, numbered(buffer, i), 7, NOW, NOW + 10, &sum), 0);
    for (unsigned i = 1000; i < 60000; i++) {
        assert_int_equal(store_table_set(&t, numbered(buffer, i), MK_STR("x"), NOW, 0), 0);
        assert_str(value_at(&t, buffer, NOW), "x"); /* marks the value as used */
    }
    for (unsigned i = 0; i < 300; i++) {
        assert_int_equal(store_table_incr(&t, numbered(buffer, i), 0, NOW, 0, &sum), 0);
        assert_int_equal(sum, 7);
    }
    drop(&t);
}

/* Clients can fill the table, and each call holds a lock that all workers share: no call may search the whole
 * table. */
static void store_table_call_searches_part_of_large_table(void **state)
{
    enum { LARGE = 16 << 20 };
    struct store_table t = {0};
    char buffer[32];
    unsigned i = 0, calls = 0;
    (void)state;
    assert_int_equal(store_table_init(&t, calloc(1, LARGE), LARGE), 0);
    while (!store_table_add(&t, 0, numbered(buffer, i), MK_STR("lock"), NOW, NOW + (i < 100000 ? 1000 : 10)))
        i++;
    assert_in_range(i, 110000, 140000);
    /* The entries from 100,000 on have expired by now, but are far from the eviction position. */
    while (store_table_add(&t, 0, numbered(buffer, i), MK_STR("lock"), NOW + 20, NOW + 1000) == -ENOSPC)
        assert_true(++calls < 20);
    assert_true(calls > 2);
    free(t.memory);
}

/* Returns the number of entries that the client can add. */
static unsigned fill_for(const struct store_table *t, uint32_t owner, unsigned first)
{
    char buffer[32];
    unsigned n = 0, refused = 0;
    for (unsigned i = first; refused < 200; i++) {
        int e = store_table_add(t, owner, numbered(buffer, i), MK_STR("lock"), NOW, NOW + 1000);
        assert_true(e == 0 || e == -EDQUOT || e == -ENOSPC);
        n += !e;
        refused += e != 0;
    }
    return n;
}

static void check_shares(size_t size)
{
    struct store_table t = {0};
    char buffer[32];
    assert_int_equal(store_table_init(&t, calloc(1, size), size), 0);
    uint32_t first = store_table_client_id(&t, MK_STR("first")),
             second = store_table_client_id(&t, MK_STR("second"));
    assert_int_not_equal(first, second);
    unsigned max = t.n_blocks * STORE_SHARDS, n = fill_for(&t, first, 0);
    assert_in_range(n, max * 9 / 20, max * 11 / 20);
    assert_int_equal(store_table_add(&t, first, numbered(buffer, 0), MK_STR("x"), NOW, 0), -EEXIST);
    /* The other half is available to other clients. */
    n = fill_for(&t, second, 10000000);
    assert_in_range(n, max * 9 / 20, max * 11 / 20);
    /* Expired entries do not count toward the limit. */
    assert_int_equal(store_table_add(&t, first, MK_STR("later"), MK_STR("x"), NOW + 1000, NOW + 2000), 0);
    free(t.memory);
}

static void store_table_client_has_half_of_space(void **state)
{
    (void)state;
    check_shares(SIZE / 8);
    check_shares(SIZE);
    check_shares(4 * SIZE);
}

static void store_table_client_deletion_returns_quota(void **state)
{
    struct store_table t = make();
    char buffer[32];
    (void)state;
    uint32_t owner = store_table_client_id(&t, MK_STR("client"));
    for (unsigned i = 0; i < 100000; i++) {
        mk_str key = numbered(buffer, i);
        assert_int_equal(store_table_add(&t, owner, key, MK_STR("lock"), NOW, 0), 0);
        assert_int_equal(store_table_delete_if(&t, key, MK_STR("lock"), NOW), 0);
    }
    drop(&t);
}

static void store_table_short_keys_are_distinct(void **state)
{
    struct store_table t = make(), other = make();
    unsigned char a[STORE_SHORT_KEY], b[STORE_SHORT_KEY], c[STORE_SHORT_KEY];
    (void)state;
    store_table_hash_key(&t, MK_STR("l:shop:a"), a);
    store_table_hash_key(&t, MK_STR("l:shop:b"), b);
    assert_memory_not_equal(a, b, sizeof a);
    assert_memory_not_equal(a, a + 8, 8);
    store_table_hash_key(&other, MK_STR("l:shop:a"), c);
    assert_memory_not_equal(a, c, sizeof a);
    store_table_hash_key(&t, MK_STR("l:shop:a"), c);
    assert_memory_equal(a, c, sizeof a);
    drop(&t);
    drop(&other);
}

static void store_table_failed_set_keeps_old_value(void **state)
{
    static char longest[STORE_VALUE_MAX + 1];
    struct store_table t = make();
    char buffer[32];
    mk_str k = MK_STR("k"), larger = mk_str_of(longest, 2000);
    (void)state;
    assert_int_equal(store_table_add(&t, 0, k, MK_STR("old"), NOW, 0), 0);
    assert_int_equal(store_table_set(&t, k, mk_str_of(longest, sizeof longest), NOW, 0), -EMSGSIZE);
    assert_str(value_at(&t, "k", NOW), "old");
    for (unsigned i = 0; i < 10000; i++)
        (void)store_table_add(&t, 0, numbered(buffer, i), MK_STR("lock"), NOW, 0);
    assert_int_equal(store_table_set(&t, k, larger, NOW, 0), -ENOSPC);
    assert_int_equal(store_table_replace(&t, k, larger, NOW, 0), -ENOSPC);
    assert_str(value_at(&t, "k", NOW), "old");
    /* The space of the old value is sufficient for the new one. */
    assert_int_equal(store_table_set(&t, k, MK_STR("new"), NOW, 0), 0);
    assert_str(value_at(&t, "k", NOW), "new");
    drop(&t);
}

static void store_table_recently_used_value_is_kept(void **state)
{
    struct store_table t = make();
    char buffer[32], text[1000];
    (void)state;
    memset(text, 'x', sizeof text);
    assert_int_equal(store_table_set(&t, MK_STR("loved"), MK_STR("still"), NOW, 0), 0);
    for (unsigned i = 0; i < 5000; i++) {
        assert_int_equal(store_table_set(&t, numbered(buffer, i), mk_str_of(text, sizeof text), NOW, 0), 0);
        assert_str(value_at(&t, "loved", NOW), "still");
    }
    drop(&t);
}

/* Changes the table until the process is killed. */
static void change_for_ever(const struct store_table *t)
{
    char buffer[32], text[600];
    int64_t sum;
    memset(text, 'x', sizeof text);
    for (unsigned i = 0;; i++) {
        (void)store_table_set(t, numbered(buffer, i % 3000), mk_str_of(text, i % sizeof text), NOW, 0);
        (void)store_table_delete_if(t, numbered(buffer, (i * 7) % 3000), MK_STR_NULL, NOW);
        (void)store_table_incr(t, MK_STR("n"), 1, NOW, 0, &sum);
    }
}

static void store_table_killed_process_leaves_it_consistent(void **state)
{
    struct store_table t = make();
    char buffer[32];
    (void)state;
    for (unsigned round = 0; round < 50; round++) {
        int64_t before, after;
        assert_int_equal(store_table_incr(&t, MK_STR("n"), 1, NOW, 0, &before), 0);
        pid_t pid = fork();
        if (pid == 0)
            change_for_ever(&t);
        assert_true(pid > 0);
        do
            assert_int_equal(store_table_incr(&t, MK_STR("n"), 1, NOW, 0, &after), 0);
        while (after < before + 100);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        for (unsigned i = 0; i < 3000; i += 50) {
            mk_str key = numbered(buffer, i);
            assert_int_equal(store_table_set(&t, key, MK_STR("mine"), NOW, 0), 0);
            assert_int_equal(store_table_delete_if(&t, key, MK_STR("mine"), NOW), 0);
        }
    }
    drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_table_keeps_values_of_any_length),
        cmocka_unit_test(store_table_init_leaves_blocks_untouched),
        cmocka_unit_test(store_table_reader_without_memory_leaves_no_lock),
        cmocka_unit_test(store_table_add_and_replace_check_existence),
        cmocka_unit_test(store_table_entries_expire),
        cmocka_unit_test(store_table_incr_counts_and_expires),
        cmocka_unit_test(store_table_full_evicts_values_but_no_locks),
        cmocka_unit_test(store_table_full_evicts_first_to_expire),
        cmocka_unit_test(store_table_full_evicts_values_first),
        cmocka_unit_test(store_table_call_searches_part_of_large_table),
        cmocka_unit_test(store_table_client_has_half_of_space),
        cmocka_unit_test(store_table_client_deletion_returns_quota),
        cmocka_unit_test(store_table_short_keys_are_distinct),
        cmocka_unit_test(store_table_failed_set_keeps_old_value),
        cmocka_unit_test(store_table_recently_used_value_is_kept),
        cmocka_unit_test(store_table_killed_process_leaves_it_consistent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
