/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include "unit/test.h"

static void expect(const char sum[MK_SHA256_LEN], const char *hex)
{
    char buffer[2 * MK_SHA256_LEN + 1];
    struct mk_buf b = mk_buf_fixed(buffer, sizeof buffer);
    mk_hex_encode(&b, mk_str_of(sum, MK_SHA256_LEN));
    mk_buf_add_char(&b, '\0');
    assert_string_equal(buffer, hex);
}

static void sha256_matches_the_standard(void **state)
{
    char sum[MK_SHA256_LEN], repeated[1000];
    (void)state;
    mk_sha256(MK_STR(""), sum);
    expect(sum, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    mk_sha256(MK_STR("abc"), sum);
    expect(sum, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    mk_sha256(MK_STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              sum); /* 56 bytes need a second block */
    expect(sum, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    memset(repeated, 'a', sizeof repeated);
    mk_sha256(mk_str_of(repeated, 1000), sum);
    expect(sum, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3");
    mk_sha256(mk_str_of(repeated, 55), sum); /* the length still fits into the first block */
    expect(sum, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    mk_sha256(mk_str_of(repeated, 64), sum);
    expect(sum, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

/* Test cases 1, 2, 6 and 7 of RFC 4231. */
static void hmac_sha256_matches_the_rfc(void **state)
{
    char sum[MK_SHA256_LEN], key[131];
    (void)state;
    memset(key, 0x0b, 20);
    mk_hmac_sha256(mk_str_of(key, 20), MK_STR("Hi There"), sum);
    expect(sum, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    mk_hmac_sha256(MK_STR("Jefe"), MK_STR("what do ya want for nothing?"), sum);
    expect(sum, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    mk_hmac_sha256(mk_str_of(key, sizeof key),
                   MK_STR("Test Using Larger Than Block-Size Key - Hash Key First"), sum);
    expect(sum, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    mk_hmac_sha256(
        mk_str_of(key, sizeof key),
        MK_STR("This is a test using a larger than block-size key and a larger than block-size data. The key "
               "needs to be hashed before being used by the HMAC algorithm."),
        sum);
    expect(sum, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sha256_matches_the_standard),
                                       cmocka_unit_test(hmac_sha256_matches_the_rfc)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
