/* SPDX-License-Identifier: Apache-2.0 */
/* Hash functions of HTTP authentication, implemented with nettle. */
#ifndef AUTH_HASH_H
#define AUTH_HASH_H

#include <monkey/str.h>

enum auth_hash { AUTH_SHA256, AUTH_MD5, AUTH_SHA1 };
enum { AUTH_SHA1_LEN = 20, AUTH_HASH_MAX = 32, AUTH_KEY_LEN = 32, AUTH_MAC_LEN = 32 };

size_t auth_hash_len(enum auth_hash kind);
/* Computes the hash of the parts joined with colons, as in Digest (RFC 7616, section 3.4). */
void auth_hash_joined(enum auth_hash kind, const mk_str *parts, size_t n, uint8_t out[AUTH_HASH_MAX]);
/* Computes HMAC-SHA256 over the parts and their lengths, so that different lists never produce the same
 * input. */
void auth_hash_mac(const uint8_t key[AUTH_KEY_LEN], const mk_str *parts, size_t n, uint8_t out[AUTH_MAC_LEN]);

#endif
