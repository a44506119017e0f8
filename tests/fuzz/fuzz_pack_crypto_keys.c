/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is a JWK set or is refused; a token that none of its keys has signed is refused. */
#include <duda/crypto.h>

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char room[1024];
    struct mk_buf claims = mk_buf_fixed(room, sizeof room);
    const struct duda_jwt_rules rules = {.eternal = true};
    struct duda_jwt_keys *keys = duda_jwt_keys_new(mk_str_of((const char *)data, size));
    if (!keys)
        return 0;
    MK_ASSERT(duda_jwt_keys_count(keys) <= DUDA_JWT_KEYS_MAX);
    /* {"alg":"RS256"} and {"alg":"ES256"} */
    MK_ASSERT(duda_jwt_check_by(&claims, keys, MK_STR("eyJhbGciOiJSUzI1NiJ9.e30.AAAA"), &rules) < 0);
    MK_ASSERT(duda_jwt_check_by(&claims, keys, MK_STR("eyJhbGciOiJFUzI1NiJ9.e30.AAAA"), &rules) < 0);
    duda_jwt_keys_free(keys);
    return 0;
}
