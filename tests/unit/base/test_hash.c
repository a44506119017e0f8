/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>

#include "unit/test.h"

/* The key from the SipHash paper: bytes 00 to 0f. */
static const struct mk_hash_key KEY = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

/* The hashes are SipHash-1-3 of the bytes 00, 01, 02, ... of the given length, from a separate implementation
 * that also reproduces the published SipHash-2-4 values. */
static void hash_with_paper_key_has_known_values(void **state)
{
    (void)state;
    static const struct {
        size_t len;
        uint64_t hash;
    } known[] = {
        {0, 0xabac0158050fc4dc},  {1, 0xc9f49bf37d57ca93},  {2, 0x82cb9b024dc7d44d},
        {3, 0x8bf80ab8e7ddf7fb},  {4, 0xcf75576088d38328},  {5, 0xdef9d52f49533b67},
        {6, 0xc50d2b50c59f22a7},  {7, 0xd3927d989bb11140},  {8, 0x369095118d299a8e},
        {9, 0x25a48eb36c063de4},  {10, 0x79de85ee92ff097f}, {11, 0x70c118c1f94dc352},
        {12, 0x78a384b157b4d9a2}, {13, 0x306f760c1229ffa7}, {14, 0x605aa111c0f95d34},
        {15, 0xd320d86d2a519956}, {16, 0xcc4fdd1a7d908b66}, {23, 0x525a0e7fdae6c123},
        {24, 0xf464aeb267349c8c}, {31, 0x2370dd1f8c21d1bc}, {32, 0x81157b6c16a7b60d},
        {63, 0x9d199062b7bbb3a8},
    };
    for (size_t i = 0; i < MK_LEN(known); i++) {
        /* The text is unaligned and ends with its heap block, so that the sanitizer detects reads past the
         * end. */
        char *buffer = malloc(known[i].len + 1);
        assert_non_null(buffer);
        for (size_t k = 0; k < known[i].len; k++)
            buffer[1 + k] = (char)k;
        uint64_t hash = mk_hash(&KEY, mk_str_of(buffer + 1, known[i].len));
        if (hash != known[i].hash)
            fail_msg("%zu bytes: %016lx is not %016lx", known[i].len, hash, known[i].hash);
        free(buffer);
    }
}

/* The values are those of Python 3.11 and later for hash(b"...") with PYTHONHASHSEED=0. */
static void hash_with_zero_key_has_known_values(void **state)
{
    (void)state;
    static const struct mk_hash_key zero = {0, 0};
    assert_true(mk_hash(&zero, MK_STR("abc")) == 0xc03bc3a0042630f2);
    assert_true(mk_hash(&zero, MK_STR("hello world")) == 0xb1b1f2e707e4ac8a);
}

static uint64_t known(const struct mk_hash_key *key, const char *text, size_t len)
{
    char *buffer = test_malloc(len + 1); /* the text is unaligned and ends with this block */
    memcpy(buffer + 1, text, len);
    uint64_t hash = mk_hash_trusted(key, mk_str_of(buffer + 1, len));
    test_free(buffer);
    return hash;
}

static void hash_known_depends_on_every_bit(void **state)
{
    (void)state;
    char text[30] = "a text of 30 bytes, or of less";
    for (size_t len = 0; len <= sizeof text; len++) {
        uint64_t whole = known(&KEY, text, len);
        struct mk_hash_key first = {KEY.k0 ^ 1, KEY.k1}, second = {KEY.k0, KEY.k1 ^ 1};
        assert_true(whole != known(&first, text, len) && whole != known(&second, text, len));
        assert_true(len == 0 || whole != known(&KEY, text, len - 1));
        for (size_t bit = 0; bit < len * 8; bit++) {
            text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
            assert_true(whole != known(&KEY, text, len));
            text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        }
    }
}

/* Checks the low bits, which tables use. */
static void hash_known_is_spread_evenly(void **state)
{
    (void)state;
    enum { TEXTS = 4096, BUCKETS = 1024 };
    unsigned buckets[BUCKETS] = {0}, most = 0;
    for (unsigned i = 0; i < TEXTS; i++) {
        char text[32];
        int len = snprintf(text, sizeof text, "img/%u.html", i);
        unsigned *bucket = &buckets[known(&KEY, text, (size_t)len) % BUCKETS];
        *bucket += 1;
        most = *bucket > most ? *bucket : most;
    }
    assert_true(most <= 16); /* the average is 4 */
}

static void hash_depends_on_every_bit_of_text_and_key(void **state)
{
    (void)state;
    char text[20] = "a text of 20 bytes..";
    uint64_t whole = mk_hash(&KEY, mk_str_of(text, sizeof text));
    for (size_t bit = 0; bit < sizeof text * 8; bit++) {
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        assert_true(mk_hash(&KEY, mk_str_of(text, sizeof text)) != whole);
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
    }
    for (unsigned bit = 0; bit < 64; bit++) {
        struct mk_hash_key a = {KEY.k0 ^ 1ull << bit, KEY.k1}, b = {KEY.k0, KEY.k1 ^ 1ull << bit};
        assert_true(mk_hash(&a, mk_str_of(text, sizeof text)) != whole);
        assert_true(mk_hash(&b, mk_str_of(text, sizeof text)) != whole);
    }
}

static void hash_depends_on_trailing_zeros(void **state)
{
    (void)state;
    static const char zeros[17] = {0};
    for (size_t i = 0; i < sizeof zeros; i++)
        for (size_t k = 0; k < i; k++)
            assert_true(mk_hash(&KEY, mk_str_of(zeros, i)) != mk_hash(&KEY, mk_str_of(zeros, k)));
    assert_true(mk_hash(&KEY, MK_STR_NULL) == mk_hash(&KEY, MK_STR("")));
}

static void hash_random_keys_differ(void **state)
{
    (void)state;
    struct mk_hash_key a = mk_hash_key_random(), b = mk_hash_key_random();
    assert_true(a.k0 != b.k0 || a.k1 != b.k1);
    assert_true(a.k0 != a.k1);
}

static void fnv1a_has_known_values(void **state)
{
    (void)state;
    assert_true(mk_fnv1a(MK_FNV1A_INIT, MK_STR("")) == UINT64_C(0xcbf29ce484222325));
    assert_true(mk_fnv1a(MK_FNV1A_INIT, MK_STR_NULL) == MK_FNV1A_INIT);
    assert_true(mk_fnv1a(MK_FNV1A_INIT, MK_STR("a")) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(mk_fnv1a(MK_FNV1A_INIT, MK_STR("foobar")) == UINT64_C(0x85944171f73967e8));
    assert_true(mk_fnv1a(MK_FNV1A_INIT, MK_STR("\xff")) == UINT64_C(0xaf64724c8602eb6e)); /* unsigned bytes */
    assert_true(mk_fnv1a_byte(mk_fnv1a(MK_FNV1A_INIT, MK_STR("fooba")), 'r') == UINT64_C(0x85944171f73967e8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_with_paper_key_has_known_values),
        cmocka_unit_test(hash_with_zero_key_has_known_values),
        cmocka_unit_test(hash_depends_on_every_bit_of_text_and_key),
        cmocka_unit_test(hash_known_depends_on_every_bit),
        cmocka_unit_test(hash_known_is_spread_evenly),
        cmocka_unit_test(hash_depends_on_trailing_zeros),
        cmocka_unit_test(hash_random_keys_differ),
        cmocka_unit_test(fnv1a_has_known_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
