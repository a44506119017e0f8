/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is parsed as a JWK set or rejected; a token that none of its keys has signed is rejected. */
#include <duda/crypto.h>

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char buffer[1024];
    struct mk_buf claims = mk_buf_fixed(buffer, sizeof buffer);
    const struct duda_jwt_rules rules = {.allow_no_expiry = true};
    struct duda_jwks *keys = duda_jwks_new(mk_str_of((const char *)data, size));
    if (!keys)
        return 0;
    MK_ASSERT(duda_jwks_count(keys) <= DUDA_JWKS_MAX);
    /* {"alg":"RS256"} and {"alg":"ES256"} */
    MK_ASSERT(duda_jwt_verify_jwks(&claims, keys, MK_STR("eyJhbGciOiJSUzI1NiJ9.e30.AAAA"), &rules) < 0);
    MK_ASSERT(duda_jwt_verify_jwks(&claims, keys, MK_STR("eyJhbGciOiJFUzI1NiJ9.e30.AAAA"), &rules) < 0);
    duda_jwks_free(keys);
    return 0;
}
