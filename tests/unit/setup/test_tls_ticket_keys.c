/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/tls_ticket_keys.h"

#include "unit/test.h"

static const struct mk_tls_ticket_key nothing;

static const struct mk_tls_ticket_key *key(const struct mk_tls_tickets *t, uint32_t n)
{
    return &t->keys[n % MK_TLS_TICKET_KEYS];
}

static void ticket_keys_initially_have_a_key(void **state)
{
    struct mk_shared_state shared = {0};
    (void)state;
    struct mk_tls_tickets *t = mk_tls_ticket_keys_get(&shared);
    assert_non_null(t);
    assert_memory_not_equal(key(t, t->newest), &nothing, sizeof nothing);
    assert_memory_not_equal(key(t, t->newest)->cipher, key(t, t->newest)->mac, 32);
    mk_shared_state_fini(&shared);
}

static void ticket_keys_are_kept_by_the_next_generation(void **state)
{
    struct mk_shared_state shared = {0}, other = {0};
    (void)state;
    struct mk_tls_tickets *t = mk_tls_ticket_keys_get(&shared);
    struct mk_tls_ticket_key before = *key(t, t->newest);
    assert_ptr_equal(mk_tls_ticket_keys_get(&shared), t);
    assert_memory_equal(key(t, t->newest), &before, sizeof before);
    struct mk_tls_tickets *strange = mk_tls_ticket_keys_get(&other);
    assert_memory_not_equal(key(strange, strange->newest), &before, sizeof before);
    mk_shared_state_fini(&shared);
    mk_shared_state_fini(&other);
}

static void ticket_keys_rotation_keeps_the_previous_key(void **state)
{
    struct mk_shared_state shared = {0};
    (void)state;
    struct mk_tls_tickets *t = mk_tls_ticket_keys_get(&shared);
    for (int i = 0; i < 3 * MK_TLS_TICKET_KEYS; i++) {
        struct mk_tls_ticket_key last = *key(t, t->newest);
        uint32_t n = t->newest;
        assert_int_equal(mk_tls_ticket_keys_rotate(t), 0);
        assert_int_equal(t->newest, n + 1);
        assert_memory_equal(key(t, n), &last, sizeof last);
        assert_memory_not_equal(key(t, n + 1), &last, sizeof last);
        assert_memory_equal(key(t, n + 2), &nothing, sizeof nothing);
    }
    mk_shared_state_fini(&shared);
}

static void ticket_keys_counter_can_overflow(void **state)
{
    struct mk_shared_state shared = {0};
    (void)state;
    struct mk_tls_tickets *t = mk_tls_ticket_keys_get(&shared);
    t->newest = UINT32_MAX;
    t->keys[UINT32_MAX % MK_TLS_TICKET_KEYS] = t->keys[0];
    struct mk_tls_ticket_key last = *key(t, t->newest);
    assert_int_equal(mk_tls_ticket_keys_rotate(t), 0);
    assert_int_equal(t->newest, 0);
    assert_memory_equal(&t->keys[MK_TLS_TICKET_KEYS - 1], &last, sizeof last);
    mk_shared_state_fini(&shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticket_keys_initially_have_a_key),
        cmocka_unit_test(ticket_keys_are_kept_by_the_next_generation),
        cmocka_unit_test(ticket_keys_rotation_keeps_the_previous_key),
        cmocka_unit_test(ticket_keys_counter_can_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
