/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha1.h"

enum { BLOCK = 64, ROUNDS = 80, LENGTH_AT = BLOCK - 8 };

static uint32_t rotate_left(uint32_t x, unsigned by)
{
    return x << by | x >> (32 - by);
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

/* Returns the value of the round function, plus the round constant. Both change every 20 rounds. */
static uint32_t round_function(unsigned round, uint32_t b, uint32_t c, uint32_t d)
{
    switch (round / 20) {
    case 0:
        return ((b & c) | (~b & d)) + 0x5a827999;
    case 1:
        return (b ^ c ^ d) + 0x6ed9eba1;
    case 2:
        return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    default:
        return (b ^ c ^ d) + 0xca62c1d6;
    }
}

static void hash_block(uint32_t h[5], const unsigned char *block)
{
    uint32_t w[ROUNDS], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (unsigned i = 0; i < 16; i++)
        w[i] = load_be32(block + (size_t)4 * i);
    for (unsigned i = 16; i < ROUNDS; i++)
        w[i] = rotate_left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t next = rotate_left(a, 5) + round_function(i, b, c, d) + e + w[i];
        e = d;
        d = c;
        c = rotate_left(b, 30);
        b = a;
        a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void mk_sha1_init(struct mk_sha1 *s)
{
    *s = (struct mk_sha1){.h = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
}

void mk_sha1_update(struct mk_sha1 *s, mk_str piece)
{
    size_t held = s->len % BLOCK;
    s->len += piece.len;
    if (held) {
        mk_str first = mk_str_first(piece, BLOCK - held);
        if (first.len)
            memcpy(s->rest + held, first.p, first.len);
        if (held + first.len < BLOCK)
            return;
        hash_block(s->h, s->rest);
        piece = mk_str_skip(piece, first.len);
    }
    for (; piece.len >= BLOCK; piece = mk_str_skip(piece, BLOCK))
        hash_block(s->h, (const unsigned char *)piece.p);
    if (piece.len)
        memcpy(s->rest, piece.p, piece.len);
}

void mk_sha1_final(struct mk_sha1 *s, unsigned char out[MK_SHA1_LEN])
{
    unsigned char last[2 * BLOCK] = {0};
    size_t held = s->len % BLOCK;
    uint64_t bits = s->len * 8;
    memcpy(last, s->rest, held);
    last[held] = 0x80;
    size_t from = held < LENGTH_AT ? 0 : BLOCK; /* start of the last block */
    store_be32(last + from + LENGTH_AT, (uint32_t)(bits >> 32));
    store_be32(last + from + LENGTH_AT + 4, (uint32_t)bits);
    if (from)
        hash_block(s->h, last);
    hash_block(s->h, last + from);
    for (unsigned i = 0; i < 5; i++)
        store_be32(out + (size_t)4 * i, s->h[i]);
}

void mk_sha1(mk_str text, unsigned char out[MK_SHA1_LEN])
{
    struct mk_sha1 s;
    mk_sha1_init(&s);
    mk_sha1_update(&s, text);
    mk_sha1_final(&s, out);
}
