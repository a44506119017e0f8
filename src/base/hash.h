/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-1-3: a keyed hash for tables that strangers fill. */
#ifndef MK_BASE_HASH_H
#define MK_BASE_HASH_H

#include "base/str.h"

struct mk_hash_key {
    uint64_t k0, k1;
};

/* A key that nobody outside can guess. */
struct mk_hash_key mk_hash_key_random(void);

uint64_t mk_hash(const struct mk_hash_key *key, mk_str s);

#endif
