/* SPDX-License-Identifier: Apache-2.0 */
/* The key-value store itself: operations, time to live, batches, limits, and the state after the death of a
 * writer. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kv/db.h"
#include "unit/folder.h"
#include "unit/test.h"

static struct folder top;
static struct duda_kv_db *store;
static char got[4096];
static struct mk_buf shown = {got, 0, sizeof got, 0, false};

static void setup(void)
{
    folder_setup(&top);
    assert_int_equal(duda_kv_db_open(top.path, 64 << 20, false, &store), 0);
}

static void teardown(void)
{
    duda_kv_db_close(store);
}

static struct duda_kv_op op(enum duda_kv_op_type verb, const char *key, const char *value, uint64_t ttl)
{
    return (struct duda_kv_op){
        .verb = verb, .key = mk_str_from_c(key), .value = mk_str_from_c(value), .ttl_ms = ttl};
}

/* Runs these operations as one batch at this time. */
static int run(uint64_t now, size_t n, const struct duda_kv_op *ops)
{
    struct duda_kv_batch *b = duda_kv_batch_new(NULL);
    for (size_t i = 0; i < n; i++)
        duda_kv_batch_add_op(b, ops[i]);
    if (!b->error)
        duda_kv_db_write(store, b, now);
    int e = b->error;
    duda_kv_batch_free(b);
    return e;
}

static int put(uint64_t now, const char *key, const char *value, uint64_t ttl)
{
    const struct duda_kv_op one = op(DUDA_KV_OP_SET, key, value, ttl);
    return run(now, 1, &one);
}

static int count(uint64_t now, const char *key, int64_t delta, uint64_t ttl, int64_t *result)
{
    struct duda_kv_op one = op(DUDA_KV_OP_INCR, key, NULL, ttl);
    one.delta = delta;
    one.result = result;
    return run(now, 1, &one);
}

static bool show(void *ctx, mk_str key, mk_str value)
{
    size_t *left = ctx;
    mk_buf_addf(&shown, "%.*s=%.*s;", MK_STR_ARG(key), MK_STR_ARG(value));
    return !left || --*left > 0;
}

static mk_str get(uint64_t now, const char *key)
{
    mk_buf_clear(&shown);
    int e = duda_kv_db_get(store, mk_str_from_c(key), now, show, NULL);
    return e == -ENOENT ? MK_STR("none") : e ? MK_STR("error") : mk_buf_str(&shown);
}

static mk_str scan(uint64_t now, const char *prefix, const char *from, size_t max)
{
    mk_buf_clear(&shown);
    assert_int_equal(duda_kv_db_scan(store, mk_str_from_c(prefix), mk_str_from_c(from), now, show, &max), 0);
    return mk_buf_str(&shown);
}

static void kv_set_and_delete(void **state)
{
    const struct duda_kv_op delete = op(DUDA_KV_OP_DELETE, "a", NULL, 0);
    (void)state;
    assert_str(get(1, "a"), "none");
    assert_int_equal(put(1, "a", "1", 0), 0);
    assert_str(get(1, "a"), "a=1;");
    assert_int_equal(put(1, "a", "", 0), 0);
    assert_str(get(1, "a"), "a=;");
    assert_int_equal(run(1, 1, &delete), 0);
    assert_int_equal(run(1, 1, &delete), -ENOENT);
    assert_str(get(1, "a"), "none");
    assert_int_equal(put(1, "", "1", 0), -EINVAL);
    assert_str(get(1, ""), "error");
}

static void kv_scan_by_prefix(void **state)
{
    (void)state;
    for (const char *const *key = (const char *const[]){"b", "ab", "aa", "ac", "a", NULL}; *key; key++)
        assert_int_equal(put(1, *key, "x", 0), 0);
    assert_int_equal(put(1, "abc", "gone", 5), 0);
    assert_str(scan(10, "a", NULL, 9), "a=x;aa=x;ab=x;ac=x;");
    assert_str(scan(2, "ab", NULL, 9), "ab=x;abc=gone;");
    assert_str(scan(10, "a", "ab", 9), "ab=x;ac=x;");
    assert_str(scan(10, "", NULL, 2), "a=x;aa=x;");
    assert_str(scan(10, "c", NULL, 9), "");
}

static void kv_entries_expire(void **state)
{
    const struct duda_kv_op stay = op(DUDA_KV_OP_EXPIRE, "a", NULL, 0);
    (void)state;
    assert_int_equal(put(1000, "a", "1", 50), 0);
    assert_str(get(1049, "a"), "a=1;");
    assert_str(get(1050, "a"), "none");
    assert_int_equal(run(1050, 1, &stay), -ENOENT);
    assert_int_equal(put(1050, "a", "2", 50), 0);
    assert_int_equal(run(1060, 1, &stay), 0);
    assert_int_equal(put(5000, "b", "1", 0), 0); /* this write purges expired entries */
    assert_str(get(9000, "a"), "a=2;");
    for (int i = 0; i < 100; i++) {
        char key[8];
        snprintf(key, sizeof key, "t%d", i);
        assert_int_equal(put(6000, key, "x", 10), 0);
    }
    assert_str(scan(0, "t", NULL, 1), "t0=x;");
    assert_int_equal(put(7000, "b", "1", 0), 0);
    assert_int_equal(put(7000, "b", "1", 0), 0);
    assert_str(scan(0, "t", NULL, 1), ""); /* the entry is deleted, not merely hidden */
}

static void kv_batch_expectations_are_checked(void **state)
{
    const struct duda_kv_op first[] = {op(DUDA_KV_OP_SET, "x", "1", 0), op(DUDA_KV_OP_EXPECT, "a", NULL, 0),
                                       op(DUDA_KV_OP_SET, "a", "1", 0)};
    const struct duda_kv_op second[] = {op(DUDA_KV_OP_SET, "x", "2", 0),
                                        op(DUDA_KV_OP_DELETE, "none", NULL, 0),
                                        op(DUDA_KV_OP_EXPECT, "a", "1", 0)};
    (void)state;
    assert_int_equal(run(1, 3, first), 0);
    assert_int_equal(run(1, 3, first), -ESTALE);
    assert_int_equal(run(1, 3, second), 0);
    assert_str(get(1, "x"), "x=2;");
    assert_int_equal(put(1, "a", "other", 0), 0);
    assert_int_equal(run(1, 3, second), -ESTALE);
}

static void kv_incr_counts_and_expires(void **state)
{
    int64_t n = 0;
    (void)state;
    assert_int_equal(count(1, "n", 5, 100, &n), 0);
    assert_int_equal(count(50, "n", -7, 100, &n), 0);
    assert_int_equal(n, -2);
    assert_str(get(100, "n"), "n=-2;");
    assert_str(get(101, "n"), "none"); /* the lifetime began with the first increment */
    assert_int_equal(count(101, "n", 1, 0, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(count(101, "n", INT64_MAX, 0, &n), -EDOM);
    assert_int_equal(put(1, "text", "1x", 0), 0);
    assert_int_equal(count(1, "text", 1, 0, &n), -EDOM);
    assert_str(get(1, "text"), "text=1x;");
}

static void kv_limits_are_enforced(void **state)
{
    static char big[DUDA_KV_VALUE_MAX + 1], key[DUDA_KV_ROW_KEY_MAX + 2];
    struct duda_kv_op one = {
        .verb = DUDA_KV_OP_SET, .key = MK_STR("big"), .value = mk_str_of(big, sizeof big)};
    (void)state;
    assert_int_equal(run(1, 1, &one), -EMSGSIZE);
    one.value.len--;
    memset(key, 'k', sizeof key - 1);
    one.key = mk_str_from_c(key);
    assert_int_equal(run(1, 1, &one), -EINVAL);
    one.key.len--;
    one.ttl_ms = 10;
    assert_int_equal(run(1, 1, &one), 0);
    one.ttl_ms = DUDA_KV_TTL_MAX + 1;
    assert_int_equal(run(1, 1, &one), -EINVAL);
    one.ttl_ms = 0;
    int e = 0;
    for (int i = 0; i < 100 && !e; i++) {
        snprintf(key, sizeof key, "%d", i);
        one.key = mk_str_from_c(key);
        e = run(1, 1, &one);
    }
    assert_int_equal(e, -ENOSPC);
    assert_str(mk_str_first(get(1, "0"), 2), "0=");
    assert_int_equal(put(1, "0", "small", 0), 0);
}

/* One batch of a group is too large: the store commits the others. */
static void kv_group_commits_batches_that_fit(void **state)
{
    static char big[DUDA_KV_VALUE_MAX];
    struct duda_kv_batch *a = duda_kv_batch_new(NULL), *b = duda_kv_batch_new(NULL),
                         *c = duda_kv_batch_new(NULL);
    struct duda_kv_db *small;
    (void)state;
    duda_kv_db_close(store);
    assert_int_equal(duda_kv_db_open(top.path, 1 << 20, false, &small), 0);
    store = small;
    duda_kv_batch_add_op(a, op(DUDA_KV_OP_SET, "a", "1", 0));
    duda_kv_batch_add_op(
        b,
        (struct duda_kv_op){.verb = DUDA_KV_OP_SET, .key = MK_STR("b"), .value = mk_str_of(big, sizeof big)});
    duda_kv_batch_add_op(c, op(DUDA_KV_OP_DELETE, "none", NULL, 0));
    a->next = b;
    b->next = c;
    duda_kv_db_write(store, a, 1);
    assert_int_equal(a->error, 0);
    assert_int_equal(b->error, -ENOSPC);
    assert_int_equal(c->error, -ENOENT);
    assert_str(get(1, "a"), "a=1;");
    duda_kv_batch_free(a);
    duda_kv_batch_free(b);
    duda_kv_batch_free(c);
}

/* Writes numbers until the process is killed, and reports each number once it is committed. */
static void write_until_killed(int pipe_fd)
{
    struct duda_kv_db *mine;
    if (duda_kv_db_open(top.path, 64 << 20, true, &mine))
        _exit(1);
    store = mine;
    for (int i = 0;; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        if (put(1, key, key, 0) || write(pipe_fd, &i, sizeof i) != sizeof i)
            _exit(1);
    }
}

static void kv_killed_writer_loses_no_committed_entry(void **state)
{
    (void)state;
    duda_kv_db_close(store);
    store = NULL;
    for (int round = 0; round < 5; round++) {
        int fds[2], last = -1;
        assert_int_equal(pipe(fds), 0);
        pid_t child = fork();
        if (child == 0)
            write_until_killed(fds[1]);
        close(fds[1]);
        for (int n = 0; n < 20 + 13 * round; n++)
            assert_int_equal(read(fds[0], &last, sizeof last), sizeof last);
        kill(child, SIGKILL);
        while (read(fds[0], &last, sizeof last) == sizeof last) {
        }
        close(fds[0]);
        waitpid(child, NULL, 0);
        assert_int_equal(duda_kv_db_open(top.path, 64 << 20, true, &store), 0);
        for (int i = 0; i <= last; i++) {
            char key[16];
            snprintf(key, sizeof key, "k%d", i);
            assert_false(mk_str_eq(get(1, key), MK_STR("none")));
        }
        assert_int_equal(put(1, "lock", "free", 0), 0); /* the lock of the killed process blocks no one */
        duda_kv_db_close(store);
        store = NULL;
    }
}

/* ---- Two workers in one process ---- */

enum { ENTRIES = 300, ROUNDS = 3 };

static char old_text[1000], new_text[1000];

static void write_all(const char *text)
{
    for (int i = 0; i < ENTRIES; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%03d", i);
        assert_int_equal(put(1, name, text, 0), 0);
    }
}

/* While the first worker reads the first entry, the second worker reads and writes. */
struct look {
    struct duda_kv_db *first, *second;
    int n, n_old;
};

static bool on_entry(void *ctx, mk_str key, mk_str value)
{
    struct look *l = ctx;
    (void)key;
    if (l->n++ == 0) {
        store = l->second;
        assert_int_equal(get(1, "k007").len, 5 + sizeof new_text);
        for (int i = 0; i < ROUNDS; i++)
            write_all(new_text);
        store = l->first;
    }
    l->n_old += value.len == sizeof old_text - 1 && memcmp(value.p, old_text, value.len) == 0;
    return true;
}

static void kv_workers_of_one_process_have_separate_readers(void **state)
{
    struct look l = {.first = store};
    (void)state;
    memset(old_text, 'o', sizeof old_text - 1);
    memset(new_text, 'n', sizeof new_text - 1);
    write_all(old_text);
    assert_int_equal(duda_kv_db_open(top.path, 64 << 20, false, &l.second), 0);
    assert_int_equal(duda_kv_db_scan(store, MK_STR("k"), MK_STR(""), 1, on_entry, &l), 0);
    assert_int_equal(l.n, ENTRIES);
    assert_int_equal(l.n_old, ENTRIES);
    duda_kv_db_close(l.second);
    /* Closing the second database must not end the reader of the first. */
    assert_int_equal(get(1, "k007").len, 5 + sizeof new_text);
    assert_int_equal(put(1, "k007", "x", 0), 0);
    assert_str(get(1, "k007"), "k007=x;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(kv_set_and_delete, setup, teardown),
        fixture_test(kv_scan_by_prefix, setup, teardown),
        fixture_test(kv_entries_expire, setup, teardown),
        fixture_test(kv_batch_expectations_are_checked, setup, teardown),
        fixture_test(kv_incr_counts_and_expires, setup, teardown),
        fixture_test(kv_limits_are_enforced, setup, teardown),
        fixture_test(kv_group_commits_batches_that_fit, setup, teardown),
        fixture_test(kv_killed_writer_loses_no_committed_entry, setup, teardown),
        fixture_test(kv_workers_of_one_process_have_separate_readers, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
