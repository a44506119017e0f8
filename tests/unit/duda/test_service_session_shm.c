/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in shared memory: their expiry, and the state that a dying worker leaves behind. */
#include "service/session_shm.h"

#include <time.h>

#include "base/hash.h"
#include "unit/fixtures.h"
#include "unit/test.h"

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
uint64_t __real_mk_hash(const struct mk_hash_key *key, mk_str s);
uint64_t __wrap_mk_hash(const struct mk_hash_key *key, mk_str s);

/* Each is called once, at the next clock read or hash, to do what another process might do at that point. */
static void (*at_clock_read)(void), (*at_hash)(void);

static void call_once(void (**fn)(void))
{
    void (*now)(void) = *fn;
    *fn = NULL;
    if (now)
        now();
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    call_once(&at_clock_read);
    return __real_clock_gettime(clock, out);
}

uint64_t __wrap_mk_hash(const struct mk_hash_key *key, mk_str s)
{
    call_once(&at_hash);
    return __real_mk_hash(key, s);
}

enum { N = 64, NOW = 1000 };

static struct duda_session_shm shm;
static char buffer[DUDA_SESSION_MAX];
static struct mk_buf found;

static const struct duda_session_shm_client anybody;

static void setup(void)
{
    duda_session_shm_init(&shm, heap_setup(duda_session_shm_size(N)), N);
}

static const unsigned char *id_of(unsigned n)
{
    static unsigned char ids[2][DUDA_SESSION_SHM_ID]; /* two IDs are valid at a time */
    static unsigned turn;
    unsigned char *id = ids[turn++ % 2];
    memset(id, 1, DUDA_SESSION_SHM_ID);
    memcpy(id, &n, sizeof n);
    return id;
}

static bool load(unsigned n, int64_t now, uint32_t idle)
{
    found = mk_buf_fixed(buffer, sizeof buffer);
    return duda_session_shm_load(&shm, id_of(n), now, idle, &found);
}

static void session_shm_insert_replace_delete(void **state)
{
    (void)state;
    assert_false(load(1, NOW, 10));
    assert_true(duda_session_shm_insert(&shm, id_of(1), MK_STR("one"), &anybody, NOW, 10));
    assert_true(duda_session_shm_insert(&shm, id_of(2), MK_STR("two"), &anybody, NOW, 10));
    assert_true(load(1, NOW + 9, 10));
    assert_str(mk_buf_str(&found), "one");
    assert_true(duda_session_shm_replace(&shm, id_of(1), MK_STR("uno"), &anybody, NOW, 10));
    assert_true(load(1, NOW, 10));
    assert_str(mk_buf_str(&found), "uno");
    assert_true(duda_session_shm_delete(&shm, id_of(1)));
    assert_false(duda_session_shm_delete(&shm, id_of(1)));
    assert_false(load(1, NOW, 10));
    assert_true(load(2, NOW, 10));
    assert_false(duda_session_shm_insert(&shm, id_of(3), MK_STR(""), &anybody, NOW, 10));
    assert_false(
        duda_session_shm_insert(&shm, id_of(3), mk_str_of(buffer, DUDA_SESSION_MAX + 1), &anybody, NOW, 10));
}

static void session_shm_idle_session_expires(void **state)
{
    (void)state;
    assert_true(duda_session_shm_insert(&shm, id_of(1), MK_STR("one"), &anybody, NOW, 10));
    assert_true(load(1, NOW + 9, 10));  /* now expires at NOW + 19 */
    assert_true(load(1, NOW + 18, 10)); /* now expires at NOW + 28 */
    assert_false(load(1, NOW + 28, 10));
    assert_false(load(1, NOW, 10)); /* the expired session stays expired */
}

/* A revocation must outlive the sessions that it ends. */
static void session_shm_load_without_idle_timeout_keeps_expiry(void **state)
{
    (void)state;
    assert_true(duda_session_shm_insert(&shm, id_of(1), MK_STR("one"), &anybody, NOW, 100));
    assert_true(load(1, NOW + 9, 0));
    assert_int_equal(duda_session_shm_expiry(&shm, id_of(1), NOW), NOW + 100);
    assert_true(load(1, NOW + 99, 0));
    assert_false(load(1, NOW + 100, 0));
}

static void session_shm_full_set_evicts_oldest(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20 * N; i++) {
        assert_true(duda_session_shm_insert(&shm, id_of(i), MK_STR("x"), &anybody, NOW + i, 100000));
        assert_true(load(i, NOW + i, 100000));
    }
    unsigned alive = 0;
    for (unsigned i = 0; i < 20 * N; i++)
        alive += load(i, NOW, 100000);
    assert_int_equal(alive, N);
}

/* Returns the i-th session number that maps to the same set as number 0. */
static unsigned in_set(unsigned i)
{
    return i * (N / 8);
}

static void save_of(unsigned i, uint64_t address, bool is_known, int64_t now)
{
    const struct duda_session_shm_client client = {.address = address, .is_known = is_known};
    assert_true(duda_session_shm_insert(&shm, id_of(in_set(i)), MK_STR("x"), &client, now, 100000));
}

static unsigned count_alive(unsigned from, unsigned to)
{
    unsigned n = 0;
    for (unsigned i = from; i < to; i++)
        n += load(in_set(i), NOW, 100000);
    return n;
}

static void session_shm_full_set_evicts_anonymous_first(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        save_of(i, i, true, NOW + i);
    for (unsigned i = 4; i < 200; i++)
        save_of(i, i, false, NOW + i);
    assert_int_equal(count_alive(0, 4), 4);
    assert_int_equal(count_alive(196, 200), 4);
}

static void session_shm_full_set_evicts_from_address_with_most(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 7; i++)
        save_of(i, i, false, NOW);
    for (unsigned i = 7; i < 200; i++)
        save_of(i, 99, false, NOW + i);
    assert_int_equal(count_alive(0, 7), 7);
    assert_int_equal(count_alive(7, 200), 1);
    save_of(200, 100, false, NOW + 300); /* a session from another address evicts the oldest */
    assert_int_equal(count_alive(0, 7), 6);
}

static void session_shm_full_set_evicts_unreturned_clients_first(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        save_of(i, 99, false, NOW + i);
    assert_int_equal(count_alive(0, 4), 4); /* the clients use their sessions again */
    for (unsigned i = 4; i < 200; i++)
        save_of(i, 99, false, NOW + 1000 + i);
    assert_int_equal(count_alive(0, 4), 4);
    assert_int_equal(count_alive(4, 200), 4);
    save_of(200, 7, false, NOW + 300); /* a session from another address gets a slot */
    for (unsigned i = 201; i < 300; i++)
        save_of(i, 99, false, NOW + 1000 + i);
    assert_true(load(in_set(200), NOW, 100000)); /* returning clients do not evict it */
}

static void session_shm_full_set_evicts_revocations_last(void **state)
{
    const struct duda_session_shm_client revocation = {.address = 1, .is_known = true, .is_revocation = true};
    (void)state;
    assert_true(duda_session_shm_insert(&shm, id_of(in_set(0)), MK_STR("x"), &revocation, NOW, 100000));
    for (unsigned i = 1; i < 200; i++)
        save_of(i, 100 + i, true, NOW + i); /* expire later, and each address has one */
    assert_int_equal(count_alive(0, 1), 1);
    assert_int_equal(count_alive(1, 200), 7);
}

static void session_shm_replace_marks_logged_in(void **state)
{
    const struct duda_session_shm_client known = {.address = 1, .is_known = true};
    (void)state;
    for (unsigned i = 0; i < 8; i++)
        save_of(i, i, false, NOW + i);
    assert_true(duda_session_shm_replace(&shm, id_of(in_set(0)), MK_STR("x"), &known, NOW, 100000));
    save_of(8, 8, false, NOW + 10);
    assert_true(load(in_set(0), NOW, 100000));
    assert_false(load(in_set(1), NOW, 100000));
}

static void session_shm_hashes_of_clients_differ(void **state)
{
    const struct mk_addr a = {.ip = {1}}, b = {.ip = {2}};
    (void)state;
    assert_true(duda_session_shm_hash_client(&shm, &a) == duda_session_shm_hash_client(&shm, &a));
    assert_true(duda_session_shm_hash_client(&shm, &a) != duda_session_shm_hash_client(&shm, &b));
}

/* A dying worker may leave a torn write, which does not count as a session. */
static void session_shm_torn_session_is_not_found(void **state)
{
    (void)state;
    assert_true(duda_session_shm_insert(&shm, id_of(1), MK_STR("a session"), &anybody, NOW, 10));
    char *bytes = (char *)shm.memory, *data = memmem(bytes, duda_session_shm_size(N), "a session", 9);
    assert_non_null(data);
    data[2] = 'X';
    assert_false(load(1, NOW, 10));
    assert_true(duda_session_shm_insert(&shm, id_of(1), MK_STR("a session"), &anybody, NOW, 10));
    assert_true(load(1, NOW, 10));
}

/* A request that has loaded the session saves it after another request has deleted it. */
static void session_shm_deleted_session_does_not_return(void **state)
{
    (void)state;
    assert_true(duda_session_shm_insert(&shm, id_of(1), MK_STR("one"), &anybody, NOW, 10));
    assert_false(
        duda_session_shm_replace(&shm, id_of(1), mk_str_of(buffer, DUDA_SESSION_MAX + 1), &anybody, NOW, 10));
    assert_true(duda_session_shm_delete(&shm, id_of(1)));
    assert_false(duda_session_shm_replace(&shm, id_of(1), MK_STR("uno"), &anybody, NOW, 10));
    assert_false(load(1, NOW, 10));
    assert_true(duda_session_shm_insert(&shm, id_of(1), MK_STR("one"), &anybody, NOW, 10));
    assert_false(
        duda_session_shm_replace(&shm, id_of(1), MK_STR("uno"), &anybody, NOW + 10, 10)); /* expired */
    assert_false(load(1, NOW, 10));
}

static void save_another(void)
{
    assert_true(duda_session_shm_insert(&shm, id_of(2 * N), MK_STR("the other"), &anybody, NOW, 10));
}

/* Both inserts may have chosen the same slot. */
static void session_shm_simultaneous_inserts_get_separate_slots(void **state)
{
    (void)state;
    at_clock_read = save_another;
    assert_true(duda_session_shm_insert(&shm, id_of(N), MK_STR("one"), &anybody, NOW, 10));
    assert_true(load(N, NOW, 10));
    assert_true(load(2 * N, NOW, 10));
    assert_str(mk_buf_str(&found), "the other");
}

static void replace_oldest_by_revocation(void)
{
    const struct duda_session_shm_client revocation = {.address = 0, .is_known = true, .is_revocation = true};
    assert_true(duda_session_shm_insert(&shm, id_of(in_set(9)), MK_STR("x"), &revocation, NOW, 10));
}

/* Another worker has stored a revocation in the slot of the session that was to be evicted. */
static void session_shm_simultaneous_insert_keeps_revocation(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++)
        save_of(i, i, true, NOW + i);
    at_clock_read = replace_oldest_by_revocation;
    save_of(8, 8, true, NOW + 8);
    assert_true(load(in_set(9), NOW, 0));
    assert_true(load(in_set(8), NOW, 0));
    assert_false(load(in_set(1), NOW, 0));
}

/* Returns the first word of a slot; the session ID follows 48 bytes later. */
static _Atomic uint32_t *lock_of(const unsigned char *id)
{
    char *bytes = (char *)shm.memory, *at = memmem(bytes, duda_session_shm_size(N), id, DUDA_SESSION_SHM_ID);
    assert_non_null(at);
    return (_Atomic uint32_t *)(void *)(at - 48);
}

enum { LOCKED_BY_ANOTHER = 0x7fffffff };

static void acquire_lock(void)
{
    *lock_of(id_of(1)) = LOCKED_BY_ANOTHER;
}

/* The first worker was suspended for so long that another worker took over its lock. */
static void session_shm_lock_is_released_only_by_its_holder(void **state)
{
    (void)state;
    assert_true(duda_session_shm_insert(&shm, id_of(1), MK_STR("one"), &anybody, NOW, 10));
    assert_int_equal(*lock_of(id_of(1)), 0);
    at_hash = acquire_lock;
    assert_true(load(1, NOW, 10));
    assert_int_equal(*lock_of(id_of(1)), LOCKED_BY_ANOTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(session_shm_insert_replace_delete, setup),
        fixture_test(session_shm_idle_session_expires, setup),
        fixture_test(session_shm_load_without_idle_timeout_keeps_expiry, setup),
        fixture_test(session_shm_full_set_evicts_oldest, setup),
        fixture_test(session_shm_full_set_evicts_anonymous_first, setup),
        fixture_test(session_shm_full_set_evicts_from_address_with_most, setup),
        fixture_test(session_shm_full_set_evicts_unreturned_clients_first, setup),
        fixture_test(session_shm_full_set_evicts_revocations_last, setup),
        fixture_test(session_shm_replace_marks_logged_in, setup),
        fixture_test(session_shm_hashes_of_clients_differ, setup),
        fixture_test(session_shm_torn_session_is_not_found, setup),
        fixture_test(session_shm_deleted_session_does_not_return, setup),
        fixture_test(session_shm_simultaneous_inserts_get_separate_slots, setup),
        fixture_test(session_shm_simultaneous_insert_keeps_revocation, setup),
        fixture_test(session_shm_lock_is_released_only_by_its_holder, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
