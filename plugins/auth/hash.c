/* SPDX-License-Identifier: Apache-2.0 */
#include "hash.h"

#include <nettle/hmac.h>
#include <nettle/md5.h>
#include <nettle/nettle-meta.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <nettle/version.h>

/* The digest functions of Nettle 4 and newer do not take a length. */
#if NETTLE_VERSION_MAJOR >= 4
#define HASH_END(hash, ctx, out) (hash)->digest(ctx, out)
#define HMAC_END(ctx, out)       hmac_sha256_digest(ctx, out)
#else
#define HASH_END(hash, ctx, out) (hash)->digest(ctx, (hash)->digest_size, out)
#define HMAC_END(ctx, out)       hmac_sha256_digest(ctx, AUTH_MAC_LEN, out)
#endif

union context {
    struct sha256_ctx sha256;
    struct sha1_ctx sha1;
    struct md5_ctx md5;
};

static const struct nettle_hash *find_nettle_hash(enum auth_hash kind)
{
    return kind == AUTH_SHA256 ? &nettle_sha256 : kind == AUTH_SHA1 ? &nettle_sha1 : &nettle_md5;
}

size_t auth_hash_len(enum auth_hash kind)
{
    return find_nettle_hash(kind)->digest_size;
}

static const uint8_t *str_bytes(mk_str s)
{
    return (const uint8_t *)(s.p ? s.p : "");
}

void auth_hash_joined(enum auth_hash kind, const mk_str *parts, size_t n, uint8_t out[AUTH_HASH_MAX])
{
    const struct nettle_hash *hash = find_nettle_hash(kind);
    union context ctx;
    hash->init(&ctx);
    for (size_t i = 0; i < n; i++) {
        if (i)
            hash->update(&ctx, 1, (const uint8_t *)":");
        hash->update(&ctx, parts[i].len, str_bytes(parts[i]));
    }
    HASH_END(hash, &ctx, out);
    explicit_bzero(&ctx, sizeof ctx); /* ctx contains password data */
}

void auth_hash_mac(const uint8_t key[AUTH_KEY_LEN], const mk_str *parts, size_t n, uint8_t out[AUTH_MAC_LEN])
{
    struct hmac_sha256_ctx ctx;
    hmac_sha256_set_key(&ctx, AUTH_KEY_LEN, key);
    for (size_t i = 0; i < n; i++) {
        uint64_t len = parts[i].len;
        hmac_sha256_update(&ctx, sizeof len, (const uint8_t *)&len);
        hmac_sha256_update(&ctx, parts[i].len, str_bytes(parts[i]));
    }
    HMAC_END(&ctx, out);
    explicit_bzero(&ctx, sizeof ctx);
}
