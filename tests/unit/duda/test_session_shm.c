/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in shared memory: their end, and what a worker leaves that dies in the middle. */
#include "text/session_shm.h"

#include <stdlib.h>

#include "unit/meanwhile.h"
#include "unit/test.h"

enum { N = 64, NOW = 1000 };

static struct duda_session_shm vault;
static char room[DUDA_SESSION_MAX];
static struct mk_buf found;

static const struct duda_session_shm_client anybody;

static int start(void **state)
{
    (void)state;
    duda_session_shm_init(&vault, calloc(1, duda_session_shm_size(N)), N);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    free(vault.memory);
    return 0;
}

static const unsigned char *id_of(unsigned n)
{
    static unsigned char ids[2][DUDA_SESSION_SHM_ID]; /* the last two stay as they are */
    static unsigned turn;
    unsigned char *id = ids[turn++ % 2];
    memset(id, 1, DUDA_SESSION_SHM_ID);
    memcpy(id, &n, sizeof n);
    return id;
}

static bool load(unsigned n, int64_t now, uint32_t idle)
{
    found = mk_buf_fixed(room, sizeof room);
    return duda_session_shm_load(&vault, id_of(n), now, idle, &found);
}

static void kept_and_dropped(void **state)
{
    (void)state;
    assert_false(load(1, NOW, 10));
    assert_true(duda_session_shm_insert(&vault, id_of(1), MK_STR("one"), &anybody, NOW, 10));
    assert_true(duda_session_shm_insert(&vault, id_of(2), MK_STR("two"), &anybody, NOW, 10));
    assert_true(load(1, NOW + 9, 10));
    assert_str(mk_buf_str(&found), "one");
    assert_true(duda_session_shm_replace(&vault, id_of(1), MK_STR("uno"), &anybody, NOW, 10));
    assert_true(load(1, NOW, 10));
    assert_str(mk_buf_str(&found), "uno");
    assert_true(duda_session_shm_delete(&vault, id_of(1)));
    assert_false(duda_session_shm_delete(&vault, id_of(1)));
    assert_false(load(1, NOW, 10));
    assert_true(load(2, NOW, 10));
    assert_false(duda_session_shm_insert(&vault, id_of(3), MK_STR(""), &anybody, NOW, 10));
    assert_false(
        duda_session_shm_insert(&vault, id_of(3), mk_str_of(room, DUDA_SESSION_MAX + 1), &anybody, NOW, 10));
}

static void idle_ones_end(void **state)
{
    (void)state;
    assert_true(duda_session_shm_insert(&vault, id_of(1), MK_STR("one"), &anybody, NOW, 10));
    assert_true(load(1, NOW + 9, 10));  /* it lives on until 19 */
    assert_true(load(1, NOW + 18, 10)); /* until 28 */
    assert_false(load(1, NOW + 28, 10));
    assert_false(load(1, NOW, 10)); /* it is gone for good */
}

static void the_oldest_makes_room(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20 * N; i++) {
        assert_true(duda_session_shm_insert(&vault, id_of(i), MK_STR("x"), &anybody, NOW + i, 100000));
        assert_true(load(i, NOW + i, 100000));
    }
    unsigned alive = 0;
    for (unsigned i = 0; i < 20 * N; i++)
        alive += load(i, NOW, 100000);
    assert_int_equal(alive, N);
}

/* Numbers that are in the set of number 0. */
static unsigned in_set(unsigned i)
{
    return i * (N / 8);
}

static void save_of(unsigned i, uint64_t address, bool is_known, int64_t now)
{
    const struct duda_session_shm_client visitor = {address, is_known};
    assert_true(duda_session_shm_insert(&vault, id_of(in_set(i)), MK_STR("x"), &visitor, now, 100000));
}

static unsigned count_alive(unsigned from, unsigned to)
{
    unsigned n = 0;
    for (unsigned i = from; i < to; i++)
        n += load(in_set(i), NOW, 100000);
    return n;
}

static void full_set_drops_visitors_who_are_not_known_first(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        save_of(i, i, true, NOW + i);
    for (unsigned i = 4; i < 200; i++)
        save_of(i, i, false, NOW + i);
    assert_int_equal(count_alive(0, 4), 4);
    assert_int_equal(count_alive(196, 200), 4);
}

static void full_set_drops_sessions_of_the_address_with_most(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 7; i++)
        save_of(i, i, false, NOW);
    for (unsigned i = 7; i < 200; i++)
        save_of(i, 99, false, NOW + i);
    assert_int_equal(count_alive(0, 7), 7);
    assert_int_equal(count_alive(7, 200), 1);
    save_of(200, 100, false, NOW + 300); /* one of another address is let in, for the oldest */
    assert_int_equal(count_alive(0, 7), 6);
}

static void full_set_drops_sessions_whose_client_never_came_back_first(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        save_of(i, 99, false, NOW + i);
    assert_int_equal(count_alive(0, 4), 4); /* they come back */
    for (unsigned i = 4; i < 200; i++)
        save_of(i, 99, false, NOW + 1000 + i);
    assert_int_equal(count_alive(0, 4), 4);
    assert_int_equal(count_alive(4, 200), 4);
    save_of(200, 7, false, NOW + 300); /* one of another address has a place, */
    for (unsigned i = 201; i < 300; i++)
        save_of(i, 99, false, NOW + 1000 + i);
    assert_true(load(in_set(200), NOW, 100000)); /* which those that came back do not take */
}

static void replaced_session_becomes_known(void **state)
{
    const struct duda_session_shm_client known = {1, true};
    (void)state;
    for (unsigned i = 0; i < 8; i++)
        save_of(i, i, false, NOW + i);
    assert_true(duda_session_shm_replace(&vault, id_of(in_set(0)), MK_STR("x"), &known, NOW, 100000));
    save_of(8, 8, false, NOW + 10);
    assert_true(load(in_set(0), NOW, 100000));
    assert_false(load(in_set(1), NOW, 100000));
}

static void addresses_of_clients_differ(void **state)
{
    const struct mk_addr a = {.ip = {1}}, b = {.ip = {2}};
    (void)state;
    assert_true(duda_session_shm_hash_client(&vault, &a) == duda_session_shm_hash_client(&vault, &a));
    assert_true(duda_session_shm_hash_client(&vault, &a) != duda_session_shm_hash_client(&vault, &b));
}

/* Whatever a dying worker has left there, it is no session. */
static void what_is_torn_is_not_found(void **state)
{
    (void)state;
    assert_true(duda_session_shm_insert(&vault, id_of(1), MK_STR("a session"), &anybody, NOW, 10));
    char *bytes = (char *)vault.memory, *data = memmem(bytes, duda_session_shm_size(N), "a session", 9);
    assert_non_null(data);
    data[2] = 'X';
    assert_false(load(1, NOW, 10));
    assert_true(duda_session_shm_insert(&vault, id_of(1), MK_STR("a session"), &anybody, NOW, 10));
    assert_true(load(1, NOW, 10));
}

/* A request that waited while another one has ended the session. */
static void what_was_dropped_does_not_come_back(void **state)
{
    (void)state;
    assert_true(duda_session_shm_insert(&vault, id_of(1), MK_STR("one"), &anybody, NOW, 10));
    assert_false(
        duda_session_shm_replace(&vault, id_of(1), mk_str_of(room, DUDA_SESSION_MAX + 1), &anybody, NOW, 10));
    assert_true(duda_session_shm_delete(&vault, id_of(1)));
    assert_false(duda_session_shm_replace(&vault, id_of(1), MK_STR("uno"), &anybody, NOW, 10));
    assert_false(load(1, NOW, 10));
    assert_true(duda_session_shm_insert(&vault, id_of(1), MK_STR("one"), &anybody, NOW, 10));
    assert_false(duda_session_shm_replace(&vault, id_of(1), MK_STR("uno"), &anybody, NOW + 10,
                                          10)); /* its time is over */
    assert_false(load(1, NOW, 10));
}

static void save_another(void)
{
    assert_true(duda_session_shm_insert(&vault, id_of(2 * N), MK_STR("the other"), &anybody, NOW, 10));
}

/* Both may have chosen the same place. */
static void two_sessions_that_begin_at_once_get_two_places(void **state)
{
    (void)state;
    meanwhile_clock = save_another;
    assert_true(duda_session_shm_insert(&vault, id_of(N), MK_STR("one"), &anybody, NOW, 10));
    assert_true(load(N, NOW, 10));
    assert_true(load(2 * N, NOW, 10));
    assert_str(mk_buf_str(&found), "the other");
}

/* The first word of a place; the number of its session follows 48 bytes later. */
static _Atomic uint32_t *lock_of(const unsigned char *id)
{
    char *bytes = (char *)vault.memory,
         *at = memmem(bytes, duda_session_shm_size(N), id, DUDA_SESSION_SHM_ID);
    assert_non_null(at);
    return (_Atomic uint32_t *)(void *)(at - 48);
}

enum { LOCKED_BY_ANOTHER = 0x7fffffff };

static void take_the_lock(void)
{
    *lock_of(id_of(1)) = LOCKED_BY_ANOTHER;
}

/* The first one was stopped for so long that its lock went to another one. */
static void a_lock_is_released_by_its_holder_alone(void **state)
{
    (void)state;
    assert_true(duda_session_shm_insert(&vault, id_of(1), MK_STR("one"), &anybody, NOW, 10));
    assert_int_equal(*lock_of(id_of(1)), 0);
    meanwhile_hash = take_the_lock;
    assert_true(load(1, NOW, 10));
    assert_int_equal(*lock_of(id_of(1)), LOCKED_BY_ANOTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kept_and_dropped, start, stop),
        cmocka_unit_test_setup_teardown(idle_ones_end, start, stop),
        cmocka_unit_test_setup_teardown(the_oldest_makes_room, start, stop),
        cmocka_unit_test_setup_teardown(full_set_drops_visitors_who_are_not_known_first, start, stop),
        cmocka_unit_test_setup_teardown(full_set_drops_sessions_of_the_address_with_most, start, stop),
        cmocka_unit_test_setup_teardown(full_set_drops_sessions_whose_client_never_came_back_first, start,
                                        stop),
        cmocka_unit_test_setup_teardown(replaced_session_becomes_known, start, stop),
        cmocka_unit_test_setup_teardown(addresses_of_clients_differ, start, stop),
        cmocka_unit_test_setup_teardown(what_is_torn_is_not_found, start, stop),
        cmocka_unit_test_setup_teardown(what_was_dropped_does_not_come_back, start, stop),
        cmocka_unit_test_setup_teardown(two_sessions_that_begin_at_once_get_two_places, start, stop),
        cmocka_unit_test_setup_teardown(a_lock_is_released_by_its_holder_alone, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
