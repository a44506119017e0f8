/* SPDX-License-Identifier: Apache-2.0 */
/* Aumasson, Bernstein: SipHash: a fast short-input PRF (2012); the 128-bit variant of its reference code. */
#include "text/mac.h"

#include <endian.h>
#include <string.h>

enum { WORD = 8, ROUNDS = 2, LAST_ROUNDS = 4 };

static uint64_t load(const void *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return le64toh(word);
}

static uint64_t rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static void mix(uint64_t v[4], int rounds)
{
    for (int i = 0; i < rounds; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

static void absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    mix(v, ROUNDS);
    v[0] ^= word;
}

static void squeeze(uint64_t v[4], unsigned char *out)
{
    mix(v, LAST_ROUNDS);
    uint64_t word = htole64(v[0] ^ v[1] ^ v[2] ^ v[3]);
    memcpy(out, &word, sizeof word);
}

void duda_mac(const unsigned char key[DUDA_MAC_KEY], mk_str text, unsigned char out[DUDA_MAC])
{
    uint64_t k0 = load(key), k1 = load(key + WORD), last = (uint64_t)text.len << 56;
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee, k0 ^ 0x6c7967656e657261,
                     k1 ^ 0x7465646279746573};
    size_t at = 0;
    for (; at + WORD <= text.len; at += WORD)
        absorb(v, load(text.p + at));
    for (size_t i = 0; at + i < text.len; i++)
        last |= (uint64_t)(unsigned char)text.p[at + i] << (8 * i);
    absorb(v, last);
    v[2] ^= 0xee;
    squeeze(v, out);
    v[1] ^= 0xdd;
    squeeze(v, out + WORD);
}
