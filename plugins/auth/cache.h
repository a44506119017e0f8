/* SPDX-License-Identifier: Apache-2.0 */
/* Caches recently verified passwords, so that most requests need no slow hash. The cache contains only a
 * limited number of keyed hashes, and is freed with its worker; a reload starts new workers. */
#ifndef AUTH_CACHE_H
#define AUTH_CACHE_H

#include "hash.h"

struct auth_cache;

struct auth_cache *auth_cache_new(void) MK_API_MUST_USE;
void auth_cache_free(struct auth_cache *c);
bool auth_cache_has(const struct auth_cache *c, const uint8_t mac[AUTH_MAC_LEN], uint64_t now_ms,
                    uint64_t span_ms);
void auth_cache_add(struct auth_cache *c, const uint8_t mac[AUTH_MAC_LEN], uint64_t now_ms);

#endif
