/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha1.h"

#include "base/buf.h"
#include "base/codec.h"
#include "unit/test.h"

static void expect(mk_str text, const char *hex)
{
    unsigned char sum[MK_SHA1_LEN];
    char buffer[2 * MK_SHA1_LEN];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    mk_sha1(text, sum);
    mk_hex_encode(&out, mk_str_of((const char *)sum, sizeof sum));
    assert_str(mk_buf_str(&out), hex);
}

/* Examples of RFC 3174, section 7.3; the second to last is from FIPS 180. */
static void sha1_matches_the_rfc_examples(void **state)
{
    (void)state;
    static char repeated[1000000];
    memset(repeated, 'a', sizeof repeated);
    expect(MK_STR("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    expect(MK_STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
           "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    expect(mk_str_of(repeated, sizeof repeated), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    for (size_t i = 0; i < 640; i++)
        repeated[i] = (char)('0' + i % 8);
    expect(mk_str_of(repeated, 640), "dea356a2cddd90c7a7ecedc5ebb563934f460452");
    expect(MK_STR(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    expect(MK_STR_NULL, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
}

/* Hashes the hashes of all lengths at which padding can start; the expected value is from Python's
 * hashlib. */
static void sha1_is_correct_for_all_lengths_around_a_block(void **state)
{
    (void)state;
    char text[200];
    unsigned char sums[200][MK_SHA1_LEN];
    memset(text, 'x', sizeof text);
    for (size_t n = 0; n < sizeof text; n++)
        mk_sha1(mk_str_of(text, n), sums[n]);
    expect(mk_str_of((const char *)sums, sizeof sums), "bbd580c3a0c872a603baa084a09981df9eb680e5");
}

/* Hashes pieces of 1 to 150 bytes, with empty updates in between. */
static void sha1_of_pieces_equals_that_of_the_whole(void **state)
{
    (void)state;
    char text[1000];
    unsigned char whole[MK_SHA1_LEN], sum[MK_SHA1_LEN];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 7);
    mk_sha1(mk_str_of(text, sizeof text), whole);
    for (size_t size = 1; size <= 150; size++) {
        struct mk_sha1 s;
        mk_sha1_init(&s);
        for (size_t at = 0; at < sizeof text; at += size) {
            mk_sha1_update(&s, mk_str_of(text + at, mk_min(size, sizeof text - at)));
            mk_sha1_update(&s, MK_STR_NULL);
        }
        mk_sha1_final(&s, sum);
        assert_memory_equal(sum, whole, sizeof sum);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha1_matches_the_rfc_examples),
        cmocka_unit_test(sha1_is_correct_for_all_lengths_around_a_block),
        cmocka_unit_test(sha1_of_pieces_equals_that_of_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
