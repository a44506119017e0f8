/* SPDX-License-Identifier: Apache-2.0 */
#include "service/revoked_sessions.h"

#include <pthread.h>

#include "unit/fixtures.h"
#include "unit/test.h"

enum { NOW = 1795600000, HOUR = 3600 };

static struct duda_revoked_sessions *table;

static void setup(void)
{
    table = heap_setup(sizeof *table);
    duda_revoked_sessions_init(table);
}

static const unsigned char *number(unsigned i)
{
    static unsigned char n[DUDA_REVOKED_SESSION_ID];
    memcpy(n, &i, sizeof i);
    return n;
}

static struct mk_addr client(unsigned i)
{
    struct mk_addr peer = {0};
    memcpy(peer.ip, &i, sizeof i);
    return peer;
}

/* Revokes the session of a logged-in user from this address. */
static void add_from(unsigned address, const unsigned char *n, int64_t until)
{
    struct mk_addr peer = client(address);
    (void)duda_revoked_sessions_add(table, n, &(struct duda_revoked_session_client){&peer, true}, NOW, until);
}

static void add_unknown_from(unsigned address, const unsigned char *n, int64_t until)
{
    struct mk_addr peer = client(address);
    duda_revoked_sessions_add(table, n, &(struct duda_revoked_session_client){&peer, false}, NOW, until);
}

static bool add(const unsigned char *n, int64_t now, int64_t until)
{
    struct mk_addr peer = client(1);
    return duda_revoked_sessions_add(table, n, &(struct duda_revoked_session_client){&peer, true}, now,
                                     until);
}

static unsigned count_known(unsigned first, unsigned end)
{
    unsigned n = 0;
    for (unsigned i = first; i < end; i++)
        n += duda_revoked_sessions_contain(table, number(i), NOW);
    return n;
}

static void revoked_session_is_found_until_expiry(void **state)
{
    (void)state;
    assert_false(duda_revoked_sessions_contain(table, number(1), NOW));
    add(number(1), NOW, NOW + HOUR);
    assert_true(duda_revoked_sessions_contain(table, number(1), NOW));
    assert_true(duda_revoked_sessions_contain(table, number(1), NOW + HOUR));
    assert_false(duda_revoked_sessions_contain(table, number(1), NOW + HOUR + 60));
    assert_false(duda_revoked_sessions_contain(table, number(2), NOW));
    add(number(3), NOW, NOW); /* this entry has already expired */
    assert_false(duda_revoked_sessions_contain(table, number(3), NOW));
}

static void revoked_session_added_again_keeps_one_entry_and_later_expiry(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100; i++)
        add(number(1), NOW, NOW + HOUR + i * 60);
    assert_true(duda_revoked_sessions_contain(table, number(1), NOW + 2 * HOUR));
    unsigned n = 0;
    for (size_t i = 0; i < DUDA_REVOKED_SESSIONS_LINES; i++)
        for (size_t k = 0; k < DUDA_REVOKED_SESSIONS_SLOTS; k++)
            n += table->lines[i].slots[k] != 0;
    assert_int_equal(n, 1);
}

static void revoked_session_is_new_once_until_expiry(void **state)
{
    (void)state;
    assert_true(add(number(1), NOW, NOW + HOUR));
    assert_false(add(number(1), NOW, NOW + HOUR));
    assert_true(add(number(2), NOW, NOW + HOUR));
    assert_false(add(number(1), NOW, NOW + HOUR + 60));
    assert_false(add(number(1), NOW + HOUR + 60, NOW + 3 * HOUR));
    assert_true(add(number(2), NOW + HOUR + 60, NOW + 2 * HOUR));
    assert_true(add(number(3), NOW, NOW));
}

enum { THREADS = 2, SESSIONS = 2000, ROUNDS = 10, OTHERS = 20000 };

static _Atomic unsigned char n_new[SESSIONS];
static pthread_barrier_t barrier;

/* Each thread has another time, so they see other entries as expired. */
static void *revoke_all(void *ctx)
{
    const int *thread = ctx;
    struct mk_addr peer = client((unsigned)*thread);
    for (unsigned i = 0; i < SESSIONS; i++) {
        unsigned char n[DUDA_REVOKED_SESSION_ID] = {0};
        memcpy(n, &i, sizeof i);
        pthread_barrier_wait(&barrier);
        n_new[i] += duda_revoked_sessions_add(table, n, &(struct duda_revoked_session_client){&peer, true},
                                              NOW + 2 * *thread * HOUR, NOW + 10 * HOUR);
    }
    return NULL;
}

static void revoke_by_all_threads(void)
{
    pthread_t threads[THREADS];
    int index[THREADS];
    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        index[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, revoke_all, &index[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    pthread_barrier_destroy(&barrier);
}

/* The entries of other sessions belong to one client, and so are evicted first. */
static void revoked_session_is_new_for_at_most_one_thread(void **state)
{
    unsigned n_none = 0;
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        memset(table, 0, sizeof *table);
        memset(n_new, 0, sizeof n_new);
        duda_revoked_sessions_init(table);
        for (unsigned i = SESSIONS; i < SESSIONS + OTHERS; i++)
            add_from(THREADS, number(i), NOW + (i % 4 + 1) * HOUR);
        revoke_by_all_threads();
        for (unsigned i = 0; i < SESSIONS; i++) {
            assert_true(n_new[i] <= 1);
            n_none += n_new[i] == 0;
        }
    }
    assert_true(n_none < ROUNDS * SESSIONS / 100);
}

static void revoked_sessions_full_table_evicts_expired_first(void **state)
{
    unsigned lost = 0;
    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        add(number(i), NOW, NOW + 10 * HOUR);
    for (unsigned i = 1000; i < 200000; i++)
        add(number(i), NOW, NOW + HOUR);
    for (unsigned i = 0; i < 1000; i++)
        lost += !duda_revoked_sessions_contain(table, number(i), NOW);
    assert_int_equal(lost, 0);
    assert_true(duda_revoked_sessions_contain(table, number(199999), NOW));
}

static void revoked_sessions_flooding_client_evicts_its_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        add_from(i, number(i), NOW + HOUR);
    for (unsigned i = 1000; i < 200000; i++)
        add_from(1000, number(i), NOW + 2 * HOUR);
    assert_true(count_known(0, 1000) > 990); /* only twelve bits identify a client */
}

/* Only 31 bits identify a session ID, so false matches are rare. */
static void revoked_sessions_anonymous_does_not_evict_logged_in(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 200000; i++) /* fills all buckets with entries of logged-in users */
        add_from(i, number(i), NOW + HOUR);
    unsigned n = count_known(0, 200000);
    assert_in_range(n, DUDA_REVOKED_SESSIONS_LINES * DUDA_REVOKED_SESSIONS_SLOTS - 100,
                    DUDA_REVOKED_SESSIONS_LINES * DUDA_REVOKED_SESSIONS_SLOTS + 4);
    for (unsigned i = 200000; i < 230000; i++)
        add_unknown_from(i, number(i), NOW + 2 * HOUR);
    assert_int_equal(count_known(0, 200000), n);
    assert_true(count_known(200000, 230000) < 50); /* only entries in buckets that were not full were added */
}

/* Otherwise users could not log in while the table is full. Only 31 bits identify a session ID. */
static void revoked_session_that_a_full_table_drops_is_new(void **state)
{
    unsigned n_new_ids = 0;
    (void)state;
    for (unsigned i = 0; i < 200000; i++)
        add_from(i % 500, number(i), NOW + HOUR);
    struct mk_addr peer = client(1000);
    for (unsigned i = 300000; i < 301000; i++)
        n_new_ids += duda_revoked_sessions_add(
            table, number(i), &(struct duda_revoked_session_client){&peer, false}, NOW, NOW + HOUR);
    assert_true(n_new_ids >= 999);
    assert_true(count_known(300000, 301000) <= 1);
}

static void revoked_sessions_logged_in_evicts_anonymous(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 200000; i++)
        add_unknown_from(i, number(i), NOW + 2 * HOUR);
    for (unsigned i = 200000; i < 201000; i++)
        add_from(i, number(i), NOW + HOUR);
    assert_int_equal(count_known(200000, 201000), 1000);
}

/* The entries of the other client have expired, so this client may fill whole buckets. */
static void revoked_sessions_expired_entries_do_not_count(void **state)
{
    struct mk_addr peer = client(1);
    (void)state;
    for (unsigned i = 0; i < 200000; i++)
        add_from(2, number(i), NOW + HOUR);
    for (unsigned i = 200000; i < 240000; i++)
        duda_revoked_sessions_add(table, number(i), &(struct duda_revoked_session_client){&peer, false},
                                  NOW + 2 * HOUR, NOW + 3 * HOUR);
    unsigned n = 0;
    for (unsigned i = 200000; i < 240000; i++)
        n += duda_revoked_sessions_contain(table, number(i), NOW + 2 * HOUR);
    assert_true(n > 36000);
}

/* The table stores the expiry time in 20 bits, as a number of minutes. */
static void revoked_sessions_survive_wraparound_of_minutes(void **state)
{
    const int64_t wrap = INT64_C(29) * (1 << 20) * 60;
    (void)state;
    add(number(1), wrap - HOUR, wrap + HOUR);
    assert_true(duda_revoked_sessions_contain(table, number(1), wrap - HOUR));
    assert_true(duda_revoked_sessions_contain(table, number(1), wrap + HOUR));
    assert_false(duda_revoked_sessions_contain(table, number(1), wrap + 2 * HOUR));
}

static void revoked_sessions_init_keeps_key(void **state)
{
    (void)state;
    add(number(1), NOW, NOW + HOUR);
    duda_revoked_sessions_init(table);
    assert_true(duda_revoked_sessions_contain(table, number(1), NOW));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(revoked_session_is_found_until_expiry, setup),
        fixture_test(revoked_session_added_again_keeps_one_entry_and_later_expiry, setup),
        fixture_test(revoked_session_is_new_once_until_expiry, setup),
        fixture_test(revoked_session_is_new_for_at_most_one_thread, setup),
        fixture_test(revoked_sessions_full_table_evicts_expired_first, setup),
        fixture_test(revoked_sessions_flooding_client_evicts_its_own, setup),
        fixture_test(revoked_sessions_anonymous_does_not_evict_logged_in, setup),
        fixture_test(revoked_session_that_a_full_table_drops_is_new, setup),
        fixture_test(revoked_sessions_logged_in_evicts_anonymous, setup),
        fixture_test(revoked_sessions_expired_entries_do_not_count, setup),
        fixture_test(revoked_sessions_survive_wraparound_of_minutes, setup),
        fixture_test(revoked_sessions_init_keeps_key, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
