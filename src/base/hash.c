/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <sys/random.h>

#include "base/clock.h"

struct mk_hash_key mk_hash_key_random(void)
{
    struct mk_hash_key key;
    if (getrandom(&key, sizeof key, GRND_NONBLOCK) != (ssize_t)sizeof key) {
        /* Early in the boot of a device, the kernel has no entropy yet: fall back to addresses and the
         * time. */
        key.k0 = mk_clock_us() ^ (uint64_t)(uintptr_t)&key;
        key.k1 = mk_clock_unix_ms() ^ (uint64_t)(uintptr_t)&mk_hash_key_random << 17;
    }
    return key;
}

static inline uint64_t rotate_left(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static inline void siphash_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate_left(v[1], 13) ^ v[0];
    v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] = rotate_left(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate_left(v[1], 17) ^ v[2];
    v[3] = rotate_left(v[3], 21) ^ v[0];
    v[2] = rotate_left(v[2], 32);
}

/* Returns the XOR of the two halves of the 128-bit product; a similar mix if the compiler lacks 128-bit
 * integers. */
#ifdef __SIZEOF_INT128__
static inline uint64_t multiply_fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}
#else
static inline uint64_t multiply_fold(uint64_t a, uint64_t b)
{
    uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX), high = (a >> 32) * (b >> 32);
    uint64_t cross = (a >> 32) * (b & UINT32_MAX), other = (a & UINT32_MAX) * (b >> 32);
    return low ^ high ^ rotate_left(cross, 32) ^ rotate_left(other, 32);
}
#endif

static inline uint64_t load_word(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Loads a string shorter than a word. */
static inline uint64_t load_short_key(mk_str s)
{
    uint32_t first, last;
    if (s.len < sizeof first) {
        const unsigned char *p = (const unsigned char *)s.p;
        return s.len ? p[0] | (uint64_t)p[s.len / 2] << 8 | (uint64_t)p[s.len - 1] << 16 : 0;
    }
    memcpy(&first, s.p, sizeof first);
    memcpy(&last, s.p + s.len - sizeof last, sizeof last);
    return first | (uint64_t)last << 32;
}

uint64_t mk_hash_trusted(const struct mk_hash_key *key, mk_str s)
{
    uint64_t hash = key->k0, last = key->k1 ^ s.len;
    if (s.len < 8)
        return multiply_fold(hash ^ load_short_key(s), last);
    for (size_t i = 0; i + 8 < s.len; i += 8)
        hash = multiply_fold(hash ^ load_word(s.p + i), key->k1);
    return multiply_fold(hash ^ load_word(s.p + s.len - 8), last); /* may overlap the word before it */
}

uint64_t mk_hash(const struct mk_hash_key *key, mk_str s)
{
    uint64_t v[4] = {key->k0 ^ 0x736f6d6570736575, key->k1 ^ 0x646f72616e646f6d, key->k0 ^ 0x6c7967656e657261,
                     key->k1 ^ 0x7465646279746573};
    size_t whole = s.len & ~(size_t)7;
    for (size_t i = 0; i < whole; i += 8) {
        uint64_t word;
        memcpy(&word, s.p + i, sizeof word);
        v[3] ^= word;
        siphash_round(v);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t)s.len << 56;
    for (size_t i = whole; i < s.len; i++)
        last |= (uint64_t)(unsigned char)s.p[i] << (8 * (i - whole));
    v[3] ^= last;
    siphash_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    siphash_round(v);
    siphash_round(v);
    siphash_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
