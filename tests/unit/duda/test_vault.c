/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in shared memory: their end, and what a worker leaves that dies in the middle. */
#include "text/vault.h"

#include <stdlib.h>

#include "unit/test.h"

enum { N = 64, NOW = 1000 };

static struct duda_vault vault;
static char room[DUDA_SESSION_MAX];
static struct mk_buf found;

static int start(void **state)
{
    (void)state;
    duda_vault_begin(&vault, calloc(1, duda_vault_size(N)), N);
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
    static unsigned char id[DUDA_VAULT_ID];
    memset(id, 1, sizeof id);
    memcpy(id, &n, sizeof n);
    return id;
}

static bool load(unsigned n, int64_t now, uint32_t idle)
{
    found = mk_buf_fixed(room, sizeof room);
    return duda_vault_load(&vault, id_of(n), now, idle, &found);
}

static void kept_and_dropped(void **state)
{
    (void)state;
    assert_false(load(1, NOW, 10));
    assert_true(duda_vault_save(&vault, id_of(1), MK_STR("one"), NOW, 10));
    assert_true(duda_vault_save(&vault, id_of(2), MK_STR("two"), NOW, 10));
    assert_true(load(1, NOW + 9, 10));
    assert_str(mk_buf_str(&found), "one");
    assert_true(duda_vault_save(&vault, id_of(1), MK_STR("uno"), NOW, 10));
    assert_true(load(1, NOW, 10));
    assert_str(mk_buf_str(&found), "uno");
    duda_vault_drop(&vault, id_of(1));
    duda_vault_drop(&vault, id_of(1));
    assert_false(load(1, NOW, 10));
    assert_true(load(2, NOW, 10));
    assert_false(duda_vault_save(&vault, id_of(3), MK_STR(""), NOW, 10));
    assert_false(duda_vault_save(&vault, id_of(3), mk_str_of(room, DUDA_SESSION_MAX + 1), NOW, 10));
}

static void idle_ones_end(void **state)
{
    (void)state;
    assert_true(duda_vault_save(&vault, id_of(1), MK_STR("one"), NOW, 10));
    assert_true(load(1, NOW + 9, 10));  /* it lives on until 19 */
    assert_true(load(1, NOW + 18, 10)); /* until 28 */
    assert_false(load(1, NOW + 28, 10));
    assert_false(load(1, NOW, 10)); /* it is gone for good */
}

static void the_oldest_makes_room(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20 * N; i++) {
        assert_true(duda_vault_save(&vault, id_of(i), MK_STR("x"), NOW + i, 100000));
        assert_true(load(i, NOW + i, 100000));
    }
    unsigned alive = 0;
    for (unsigned i = 0; i < 20 * N; i++)
        alive += load(i, NOW, 100000);
    assert_int_equal(alive, N);
}

/* Whatever a dying worker has left there, it is no session. */
static void what_is_torn_is_not_found(void **state)
{
    (void)state;
    assert_true(duda_vault_save(&vault, id_of(1), MK_STR("a session"), NOW, 10));
    char *bytes = (char *)vault.memory, *data = memmem(bytes, duda_vault_size(N), "a session", 9);
    assert_non_null(data);
    data[2] = 'X';
    assert_false(load(1, NOW, 10));
    assert_true(duda_vault_save(&vault, id_of(1), MK_STR("a session"), NOW, 10));
    assert_true(load(1, NOW, 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kept_and_dropped, start, stop),
        cmocka_unit_test_setup_teardown(idle_ones_end, start, stop),
        cmocka_unit_test_setup_teardown(the_oldest_makes_room, start, stop),
        cmocka_unit_test_setup_teardown(what_is_torn_is_not_found, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
