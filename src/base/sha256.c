/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

enum { BLOCK = 64, ROUNDS = 64, LENGTH_AT = BLOCK - 8 };

struct sha256_state {
    uint32_t h[8];
    uint64_t len;
    unsigned char block[BLOCK];
};

static const uint32_t initial_hash[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate_right(uint32_t x, unsigned by)
{
    return x >> by | x << (32 - by);
}

static uint32_t load_be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_be32(unsigned char *p, uint32_t x)
{
    for (unsigned i = 0; i < 4; i++)
        p[i] = (unsigned char)(x >> (24 - 8 * i));
}

static void expand_schedule(const unsigned char *block, uint32_t w[ROUNDS])
{
    for (unsigned i = 0; i < 16; i++)
        w[i] = load_be32(block + i * 4);
    for (unsigned i = 16; i < ROUNDS; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10);
    }
}

/* The working variables are not shifted in each round: in round i, the variable `n` (0 is a, 7 is h) is in
 * v[(n - i) % 8]. */
__attribute__((always_inline)) static inline void hash_round(uint32_t v[8], unsigned i, uint32_t constant)
{
    uint32_t a = v[(0 - i) % 8], b = v[(1 - i) % 8], c = v[(2 - i) % 8], e = v[(4 - i) % 8];
    uint32_t t = v[(7 - i) % 8] + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) +
                 (v[(6 - i) % 8] ^ (e & (v[(5 - i) % 8] ^ v[(6 - i) % 8]))) + constant;
    v[(3 - i) % 8] += t;
    v[(7 - i) % 8] =
        t + (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) + ((a & b) | (c & (a | b)));
}

static void hash_block(struct sha256_state *s)
{
    uint32_t w[ROUNDS], v[8];
    expand_schedule(s->block, w);
    memcpy(v, s->h, sizeof v);
    for (unsigned i = 0; i < ROUNDS; i += 8)
#pragma GCC unroll 8 /* then the compiler keeps the variables in registers */
        for (unsigned k = 0; k < 8; k++)
            hash_round(v, k, constants[i + k] + w[i + k]);
    for (unsigned i = 0; i < 8; i++)
        s->h[i] += v[i];
}

static void sha256_init(struct sha256_state *s)
{
    *s = (struct sha256_state){.len = 0};
    memcpy(s->h, initial_hash, sizeof initial_hash);
}

static void sha256_update(struct sha256_state *s, mk_str text)
{
    while (text.len) {
        size_t used = s->len % BLOCK, n = mk_min(text.len, BLOCK - used);
        memcpy(s->block + used, text.p, n);
        s->len += n;
        text = mk_str_skip(text, n);
        if (s->len % BLOCK == 0)
            hash_block(s);
    }
}

static void sha256_final(struct sha256_state *s, unsigned char out[MK_SHA256_LEN])
{
    uint64_t bits = s->len * 8;
    size_t used = s->len % BLOCK;
    s->block[used++] = 0x80;
    if (used > LENGTH_AT) {
        memset(s->block + used, 0, BLOCK - used);
        hash_block(s);
        used = 0;
    }
    memset(s->block + used, 0, LENGTH_AT - used);
    store_be32(s->block + LENGTH_AT, (uint32_t)(bits >> 32));
    store_be32(s->block + LENGTH_AT + 4, (uint32_t)bits);
    hash_block(s);
    for (unsigned i = 0; i < 8; i++)
        store_be32(out + i * 4, s->h[i]);
    explicit_bzero(s, sizeof *s);
}

void mk_sha256(mk_str text, char out[MK_SHA256_LEN])
{
    struct sha256_state s;
    sha256_init(&s);
    sha256_update(&s, text);
    sha256_final(&s, (unsigned char *)out);
}

/* Hashes the padded key and the data. */
static void hash_padded_key(const unsigned char key[BLOCK], unsigned char pad, mk_str text,
                            unsigned char out[MK_SHA256_LEN])
{
    unsigned char padded[BLOCK];
    struct sha256_state s;
    for (unsigned i = 0; i < BLOCK; i++)
        padded[i] = key[i] ^ pad;
    sha256_init(&s);
    sha256_update(&s, mk_str_of((const char *)padded, BLOCK));
    sha256_update(&s, text);
    sha256_final(&s, out);
    explicit_bzero(padded, sizeof padded);
}

void mk_hmac_sha256(mk_str key, mk_str text, char out[32])
{
    unsigned char buf[BLOCK] = {0}, inner[MK_SHA256_LEN], sum[MK_SHA256_LEN];
    if (key.len > BLOCK)
        mk_sha256(key, (char *)buf);
    else if (key.len)
        memcpy(buf, key.p, key.len);
    hash_padded_key(buf, 0x36, text, inner);
    hash_padded_key(buf, 0x5c, mk_str_of((const char *)inner, sizeof inner), sum);
    memcpy(out, sum, sizeof sum);
    explicit_bzero(buf, sizeof buf);
}
