/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <memcached/command.h>
#include <memcached/hash_ring.h>
#include <memcached/reply.h>

#include "unit/test.h"

/* ---- Replies ---- */

static void memcached_reply_is_parsed(void **state)
{
    struct memcached_reply r;
    (void)state;
    assert_int_equal(memcached_reply_parse(MK_STR("HD\r\nEN\r\n"), 10, &r), 4);
    assert_int_equal(r.word, MEMCACHED_DONE);
    assert_int_equal(memcached_reply_parse(MK_STR("VA 2 c17 t-1\r\nhi\r\n"), 10, &r), 18);
    assert_int_equal(r.word, MEMCACHED_VALUE);
    assert_str(r.value, "hi");
    assert_int_equal(r.cas, 17);
    assert_int_equal(memcached_reply_parse(MK_STR("VA 0\r\n\r\n"), 10, &r), 8);
    assert_str(r.value, "");
    assert_int_equal(memcached_reply_parse(MK_STR("NF\r\n"), 10, &r), 4);
    assert_int_equal(r.word, MEMCACHED_MISS);
    assert_int_equal(memcached_reply_parse(MK_STR("SERVER_ERROR out of memory\r\n"), 10, &r), 28);
    assert_int_equal(r.word, MEMCACHED_SERVER_ERROR);
    assert_str(r.value, "out of memory");
}

static void memcached_reply_waits_for_completeness(void **state)
{
    static const char text[] = "VA 4 c1\r\na\r\nb\r\n";
    struct memcached_reply r;
    (void)state;
    for (size_t n = 0; n < sizeof text - 1; n++)
        assert_int_equal(memcached_reply_parse(mk_str_of(text, n), 10, &r), 0);
    assert_int_equal(memcached_reply_parse(mk_str_of(text, sizeof text - 1), 10, &r), sizeof text - 1);
}

static void memcached_reply_rejects_malformed(void **state)
{
    static const char *const wrong[] = {
        "\r\n",     "HD\n",      "hd\r\n",      "VA\r\n",      "VA -1\r\n",
        "VA x\r\n", "HD cx\r\n", "VA 1\r\nabc", "VALUE 1\r\n", "VA 99999999999999999999\r\n"};
    struct memcached_reply r;
    char *line = test_malloc(4096);
    (void)state;
    for (size_t i = 0; i < MK_LEN(wrong); i++)
        assert_int_equal(memcached_reply_parse(mk_str_from_c(wrong[i]), 10, &r), -EPROTO);
    assert_int_equal(memcached_reply_parse(MK_STR("VA 11\r\n"), 10, &r), -EMSGSIZE);
    memset(line, 'x', 4096);
    assert_int_equal(memcached_reply_parse(mk_str_of(line, 4096), 10, &r), -EPROTO);
    test_free(line);
}

/* ---- Commands ---- */

static mk_str written(struct memcached_command c)
{
    static char buffer[8192];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    memcached_command_format(&out, &c, 1000000000);
    assert_false(out.failed);
    return mk_buf_str(&out);
}

static void memcached_command_is_formatted(void **state)
{
    (void)state;
    const mk_str key = MK_STR("k"), value = MK_STR("hi"), odd = MK_STR("a b");
    assert_str(written((struct memcached_command){.verb = MEMCACHED_GET, .key = key}), "mg k v\r\n");
    assert_str(written((struct memcached_command){.verb = MEMCACHED_GET_CAS, .key = odd}),
               "mg YSBi b v c\r\n");
    assert_str(
        written((struct memcached_command){.verb = MEMCACHED_SET, .key = key, .value = value, .ttl_ms = 1}),
        "ms k 2 T1\r\nhi\r\n");
    assert_str(written((struct memcached_command){
                   .verb = MEMCACHED_SET, .key = key, .value = value, .ttl_ms = 40ULL * 24 * 3600 * 1000}),
               "ms k 2 T1003456000\r\nhi\r\n");
    assert_str(written((struct memcached_command){.verb = MEMCACHED_SET, .key = key, .ttl_ms = UINT64_MAX}),
               "ms k 0 T2147483647\r\n\r\n");
    assert_str(written((struct memcached_command){.verb = MEMCACHED_ADD, .key = odd, .value = value}),
               "ms YSBi 2 b ME\r\nhi\r\n");
    assert_str(
        written((struct memcached_command){.verb = MEMCACHED_CAS, .key = key, .value = value, .cas = 9}),
        "ms k 2 C9\r\nhi\r\n");
    assert_str(written((struct memcached_command){.verb = MEMCACHED_DELETE, .key = odd}), "md YSBi b\r\n");
    assert_str(written((struct memcached_command){.verb = MEMCACHED_TOUCH, .key = key}), "mg k T0\r\n");
    assert_str(written((struct memcached_command){.verb = MEMCACHED_INCR, .key = key, .delta = 3}),
               "ma k v N0 J3 D3\r\n");
    assert_str(written((struct memcached_command){.verb = MEMCACHED_INCR, .key = odd, .delta = INT64_MIN}),
               "ma YSBi b v N0 J0 D9223372036854775808 MD\r\n");
}

static void memcached_keys_are_checked(void **state)
{
    char buffer[251];
    (void)state;
    memset(buffer, 'k', sizeof buffer);
    assert_int_equal(memcached_key_check(mk_str_of(buffer, 250)), 0);
    assert_int_equal(memcached_key_check(mk_str_of(buffer, 251)), -EINVAL);
    assert_int_equal(memcached_key_check(MK_STR("")), -EINVAL);
    buffer[0] = ' ';
    assert_int_equal(memcached_key_check(mk_str_of(buffer, 180)), 0);
    assert_int_equal(memcached_key_check(mk_str_of(buffer, 181)), -EINVAL);
}

/* ---- Hash ring ---- */

enum { KEYS = 10000 };

static unsigned ring_server(const struct memcached_hash_ring_point *points, unsigned n, unsigned i)
{
    char buffer[16];
    struct mk_buf key = mk_buf_fixed(buffer, sizeof buffer);
    mk_buf_addf(&key, "key%u", i);
    return memcached_hash_ring_find(points, n, mk_buf_str(&key));
}

static void memcached_ring_added_server_moves_only_its_share(void **state)
{
    static struct memcached_hash_ring_point four[4 * MEMCACHED_POINTS], five[5 * MEMCACHED_POINTS];
    const mk_str names[] = {MK_STR("a:1"), MK_STR("b:1"), MK_STR("c:1"), MK_STR("d:1"), MK_STR("e:1")};
    unsigned shares[5] = {0}, moved = 0;
    (void)state;
    memcached_hash_ring_build(four, names, 4);
    memcached_hash_ring_build(five, names, 5);
    for (unsigned i = 0; i < KEYS; i++) {
        unsigned before = ring_server(four, 4, i), after = ring_server(five, 5, i);
        assert_true(before == after || after == 4);
        moved += before != after;
        shares[after]++;
    }
    for (unsigned i = 0; i < 5; i++)
        assert_in_range(shares[i], KEYS / 5 * 7 / 10, KEYS / 5 * 13 / 10);
    assert_in_range(moved, KEYS / 5 * 7 / 10, KEYS / 5 * 13 / 10);
}

static void memcached_ring_ignores_server_order(void **state)
{
    static struct memcached_hash_ring_point one[2 * MEMCACHED_POINTS], other[2 * MEMCACHED_POINTS];
    const mk_str names[] = {MK_STR("a:1"), MK_STR("b:1")}, turned[] = {MK_STR("b:1"), MK_STR("a:1")};
    (void)state;
    memcached_hash_ring_build(one, names, 2);
    memcached_hash_ring_build(other, turned, 2);
    for (unsigned i = 0; i < 100; i++)
        assert_int_not_equal(ring_server(one, 2, i), ring_server(other, 2, i));
    assert_int_equal(ring_server(one, 1, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memcached_reply_is_parsed),
        cmocka_unit_test(memcached_reply_waits_for_completeness),
        cmocka_unit_test(memcached_reply_rejects_malformed),
        cmocka_unit_test(memcached_command_is_formatted),
        cmocka_unit_test(memcached_keys_are_checked),
        cmocka_unit_test(memcached_ring_added_server_moves_only_its_share),
        cmocka_unit_test(memcached_ring_ignores_server_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
