/* SPDX-License-Identifier: Apache-2.0 */
/* The 128-bit variant of SipHash, as in the reference code of "SipHash: a fast short-input PRF" (Aumasson and
 * Bernstein, 2012). */
#include "service/siphash.h"

#include <endian.h>
#include <string.h>

enum { WORD = 8, ROUNDS = 2, LAST_ROUNDS = 4 };

static uint64_t load_le64(const void *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return le64toh(word);
}

static uint64_t rotate_left(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static void sip_rounds(uint64_t v[4], int rounds)
{
    for (int i = 0; i < rounds; i++) {
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
}

static void sip_absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_rounds(v, ROUNDS);
    v[0] ^= word;
}

static void sip_squeeze(uint64_t v[4], unsigned char *out)
{
    sip_rounds(v, LAST_ROUNDS);
    uint64_t word = htole64(v[0] ^ v[1] ^ v[2] ^ v[3]);
    memcpy(out, &word, sizeof word);
}

void duda_siphash128(const unsigned char key[DUDA_SIPHASH_KEY], mk_str text,
                     unsigned char out[DUDA_SIPHASH_TAG])
{
    uint64_t k0 = load_le64(key), k1 = load_le64(key + WORD), last = (uint64_t)text.len << 56;
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee, k0 ^ 0x6c7967656e657261,
                     k1 ^ 0x7465646279746573};
    size_t at = 0;
    for (; at + WORD <= text.len; at += WORD)
        sip_absorb(v, load_le64(text.p + at));
    for (size_t i = 0; at + i < text.len; i++)
        last |= (uint64_t)(unsigned char)text.p[at + i] << (8 * i);
    sip_absorb(v, last);
    v[2] ^= 0xee;
    sip_squeeze(v, out);
    v[1] ^= 0xdd;
    sip_squeeze(v, out + WORD);
}
