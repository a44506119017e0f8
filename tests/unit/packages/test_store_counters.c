/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <monkey/buf.h>
#include <signal.h>
#include <store/rate_limiter.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/test.h"

enum { SIZE = 128 << 10, NOW = 1000 };

static struct store_rate_limiter counters;

static void setup(void)
{
    void *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    assert_int_equal(store_rate_limiter_init(&counters, memory, SIZE), 0);
}

static void teardown(void)
{
    assert_int_equal(munmap(counters.memory, SIZE), 0);
}

static int use(const char *key, uint64_t max, uint64_t now, uint64_t expires)
{
    return store_rate_limiter_count(&counters, mk_str_from_c(key), max, now, expires);
}

static int use_made_up(unsigned i)
{
    char buffer[32];
    struct mk_buf b = mk_buf_fixed(buffer, sizeof buffer);
    mk_buf_addf(&b, "name%u", i);
    return store_rate_limiter_count(&counters, mk_buf_str(&b), 5, NOW, NOW + 60000);
}

static void rate_limiter_rejects_over_limit_until_window_ends(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(use("a", 3, NOW + i, NOW + i + 10), 0);
    assert_int_equal(use("a", 3, NOW + 9, NOW + 19), -EDQUOT);
    assert_int_equal(use("b", 3, NOW + 9, NOW + 19), 0);
    assert_int_equal(use("a", 3, NOW + 10, NOW + 20), 0); /* the window began with the first call */
    assert_int_equal(use("none", 0, NOW, NOW + 10), -EDQUOT);
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(use("a", 3, NOW + 11, NOW + 20), i < 2 ? 0 : -EDQUOT);
}

static void rate_limiter_random_keys_do_not_evict_counter_near_limit(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(use("root", 5, NOW, NOW + 1000), 0);
    for (unsigned i = 0; i < 200000; i++)
        assert_int_equal(use_made_up(i), 0);
    assert_int_equal(use("root", 5, NOW, NOW + 1000), 0);
    assert_int_equal(use("root", 5, NOW, NOW + 1000), -EDQUOT);
    for (unsigned i = 0; i < 200000; i++)
        assert_int_equal(use_made_up(i), 0);
    assert_int_equal(use("root", 5, NOW, NOW + 1000), -EDQUOT);
}

static void rate_limiter_evicts_first_to_expire_of_equals(void **state)
{
    unsigned lost = 0;
    char key[2] = "a";
    (void)state;
    for (key[0] = 'a'; key[0] <= 'z'; key[0]++)
        assert_int_equal(use(key, 5, NOW, NOW + 90000), 0);
    for (unsigned i = 0; i < 20000; i++)
        assert_int_equal(use_made_up(i), 0);
    for (key[0] = 'a'; key[0] <= 'z'; key[0]++)
        lost += use(key, 1, NOW, NOW + 90000) != -EDQUOT;
    assert_int_equal(lost, 0);
}

static int take(const char *key, uint64_t now, uint64_t *left)
{
    return store_rate_limiter_take_token(&counters, mk_str_from_c(key), 10, 30, now, left);
}

static void rate_limiter_bucket_refills_evenly(void **state)
{
    uint64_t left;
    (void)state;
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(take("a", NOW, &left), 0);
        assert_int_equal(left, i * 10);
    }
    assert_int_equal(take("a", NOW + 4, &left), -EDQUOT);
    assert_int_equal(left, 6);
    assert_int_equal(take("a", NOW + 10, &left), 0);
    assert_int_equal(left, 30);
    assert_int_equal(take("a", NOW + 19, &left), -EDQUOT);
    assert_int_equal(take("b", NOW + 19, &left), 0);
    assert_int_equal(take("a", NOW + 100, &left), 0); /* it was full again */
    assert_int_equal(left, 10);
}

static void rate_limiter_random_keys_do_not_evict_empty_bucket(void **state)
{
    uint64_t left;
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(take("root", NOW, &left), 0);
    for (unsigned i = 0; i < 200000; i++)
        assert_int_equal(use_made_up(i), 0);
    assert_int_equal(take("root", NOW, &left), -EDQUOT);
}

static void rate_limiter_too_small_table_is_rejected(void **state)
{
    static char small[4096];
    struct store_rate_limiter c;
    (void)state;
    assert_int_equal(store_rate_limiter_init(&c, small, sizeof small), -EINVAL);
}

static void rate_limiter_reopened_table_keeps_counters(void **state)
{
    struct store_rate_limiter again;
    (void)state;
    assert_int_equal(use("a", 1, NOW, NOW + 10), 0);
    assert_int_equal(store_rate_limiter_init(&again, counters.memory, SIZE), 0);
    assert_int_equal(store_rate_limiter_count(&again, MK_STR("a"), 1, NOW, NOW + 10), -EDQUOT);
}

static void rate_limiter_killed_process_leaves_no_lock(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 20; round++) {
        pid_t pid = fork();
        if (pid == 0)
            for (unsigned i = 0;; i++)
                (void)use_made_up(i);
        usleep(2000);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        for (unsigned i = 0; i < 1000; i++)
            assert_true(use_made_up(i) != -EBUSY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(rate_limiter_rejects_over_limit_until_window_ends, setup, teardown),
        fixture_test(rate_limiter_random_keys_do_not_evict_counter_near_limit, setup, teardown),
        fixture_test(rate_limiter_evicts_first_to_expire_of_equals, setup, teardown),
        fixture_test(rate_limiter_bucket_refills_evenly, setup, teardown),
        fixture_test(rate_limiter_random_keys_do_not_evict_empty_bucket, setup, teardown),
        fixture_test(rate_limiter_too_small_table_is_rejected, setup, teardown),
        fixture_test(rate_limiter_reopened_table_keeps_counters, setup, teardown),
        fixture_test(rate_limiter_killed_process_leaves_no_lock, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
