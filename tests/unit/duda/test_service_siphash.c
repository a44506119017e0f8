/* SPDX-License-Identifier: Apache-2.0 */
/* The first test vectors of the SipHash-2-4-128 reference code: the text is 00, 01, 02, ... */
#include "service/siphash.h"

#include "unit/test.h"

static const struct {
    size_t len;
    unsigned char mac[DUDA_SIPHASH_TAG];
} vectors[] = {
    {0, {0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93}},
    {1, {0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc, 0x45}},
    {2, {0x81, 0x77, 0x22, 0x8d, 0xa4, 0xa4, 0x5d, 0xc7, 0xfc, 0xa3, 0x8b, 0xde, 0xf6, 0x0a, 0xff, 0xe4}},
    {3, {0x9c, 0x70, 0xb6, 0x0c, 0x52, 0x67, 0xa9, 0x4e, 0x5f, 0x33, 0xb6, 0xb0, 0x29, 0x85, 0xed, 0x51}},
};

static void siphash_matches_reference_vectors(void **state)
{
    unsigned char key[DUDA_SIPHASH_KEY], out[DUDA_SIPHASH_TAG];
    char text[8];
    (void)state;
    for (unsigned i = 0; i < sizeof key; i++)
        key[i] = (unsigned char)i;
    for (unsigned i = 0; i < sizeof text; i++)
        text[i] = (char)i;
    for (size_t i = 0; i < MK_LEN(vectors); i++) {
        duda_siphash128(key, mk_str_of(text, vectors[i].len), out);
        assert_memory_equal(out, vectors[i].mac, sizeof out);
    }
}

static void siphash_depends_on_each_byte_and_length(void **state)
{
    unsigned char key[DUDA_SIPHASH_KEY] = {1}, whole[DUDA_SIPHASH_TAG], out[DUDA_SIPHASH_TAG];
    char text[40] = {0};
    (void)state;
    duda_siphash128(key, mk_str_of(text, sizeof text), whole);
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = 1;
        duda_siphash128(key, mk_str_of(text, sizeof text), out);
        assert_memory_not_equal(out, whole, sizeof out);
        text[i] = 0;
        duda_siphash128(key, mk_str_of(text, i), out);
        assert_memory_not_equal(out, whole, sizeof out);
    }
    key[15] = 1;
    duda_siphash128(key, mk_str_of(text, sizeof text), out);
    assert_memory_not_equal(out, whole, sizeof out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(siphash_matches_reference_vectors),
        cmocka_unit_test(siphash_depends_on_each_byte_and_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
