/* SPDX-License-Identifier: Apache-2.0 */
/* A token that was not signed with the key is never accepted; the claims of a signed one may be anything. */
#include <duda/crypto.h>

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct duda_jwt_key *key;
    struct mk_buf token = mk_buf_growing(1 << 17), claims = mk_buf_growing(1 << 17);
    const struct duda_jwt_rules rules = {.now = 1000, .issuer = MK_STR("us"), .audience = MK_STR("me")};
    mk_str text = mk_str_of((const char *)data, size);
    if (!key)
        key = duda_jwt_key_new(DUDA_JWT_HS256, MK_STR_NULL, MK_STR("a secret that the fuzzer never guesses"));
    MK_ASSERT(duda_jwt_verify(&claims, key, text, &rules) < 0);
    MK_ASSERT(duda_jws_verify(&claims, key, text) < 0 && claims.len == 0);
    if (duda_jws_sign(&token, key, text) == 0) {
        MK_ASSERT(duda_jws_verify(&claims, key, mk_buf_str(&token)) == 0);
        MK_ASSERT(mk_str_eq(mk_buf_str(&claims), text));
        mk_buf_clear(&token);
        mk_buf_clear(&claims);
    }
    if (duda_jwt_sign(&token, key, text) == 0 &&
        duda_jwt_verify(&claims, key, mk_buf_str(&token), &rules) == 0)
        MK_ASSERT(mk_str_eq(mk_buf_str(&claims), text));
    mk_buf_free(&token);
    mk_buf_free(&claims);
    return 0;
}
