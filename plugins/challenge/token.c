/* SPDX-License-Identifier: Apache-2.0 */
#include "token.h"

enum { MAC_LEN = 16, HEAD_LEN = 10, SIGNED_MAX = 1024, TARGET_MAX = 8192 };

/* ---- Tokens ---- */

static bool compute_mac(const struct challenge_scope *scope, enum challenge_kind kind, mk_str head,
                        char out[32])
{
    char text[SIGNED_MAX];
    struct mk_buf b = mk_buf_fixed(text, sizeof text);
    struct mk_addr network;
    mk_addr_client_prefix(&scope->client, &network);
    mk_buf_add(&b, kind == CHALLENGE_TASK ? MK_STR("task ") : MK_STR("pass "));
    mk_buf_add(&b, head);
    mk_buf_add(&b, mk_str_of((const char *)network.ip, sizeof network.ip));
    mk_buf_add_char(&b, network.is_unix ? 'u' : 'i');
    mk_buf_add(&b, scope->host);
    if (!b.failed)
        mk_hmac_sha256(scope->key, mk_buf_str(&b), out);
    return !b.failed;
}

static void add_hex_digits(struct mk_buf *out, uint64_t value, unsigned n)
{
    while (n--)
        mk_buf_add_char(out, "0123456789abcdef"[value >> 4 * n & 15]);
}

static bool parse_hex_digits(mk_str text, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < text.len; i++) {
        int digit = mk_char_hex(text.p[i]);
        if (digit < 0)
            return false;
        *value = *value << 4 | (uint64_t)digit;
    }
    return true;
}

bool challenge_token_write(const struct challenge_scope *scope, enum challenge_kind kind,
                           const struct challenge_token *token, char out[CHALLENGE_TOKEN_LEN])
{
    char mac[32];
    struct mk_buf b = mk_buf_fixed(out, CHALLENGE_TOKEN_LEN);
    add_hex_digits(&b, token->bits, 2);
    add_hex_digits(&b, (uint64_t)token->time, 8);
    if (!compute_mac(scope, kind, mk_buf_str(&b), mac))
        return false;
    mk_hex_encode(&b, mk_str_of(mac, MAC_LEN));
    return true;
}

/* Writes the token again and compares the texts, so that each token has one form. */
bool challenge_token_read(const struct challenge_scope *scope, enum challenge_kind kind, mk_str text,
                          struct challenge_token *token)
{
    char expected[CHALLENGE_TOKEN_LEN];
    uint64_t bits, time;
    if (text.len != CHALLENGE_TOKEN_LEN || !parse_hex_digits(mk_str_first(text, 2), &bits) ||
        !parse_hex_digits(mk_str_skip(mk_str_first(text, HEAD_LEN), 2), &time))
        return false;
    *token = (struct challenge_token){.bits = (unsigned)bits, .time = (int64_t)time};
    return challenge_token_write(scope, kind, token, expected) &&
           mk_consttime_eq(text, mk_str_of(expected, sizeof expected));
}

bool challenge_task_is_fresh(const struct challenge_token *task, int64_t now)
{
    return task->time <= now + CHALLENGE_SKEW_S && now <= task->time + CHALLENGE_TASK_S;
}

bool challenge_pass_is_valid(const struct challenge_token *pass, unsigned bits, int64_t lifetime_s,
                             int64_t now)
{
    return pass->bits >= bits && pass->time > now && pass->time <= now + lifetime_s + CHALLENGE_SKEW_S;
}

/* ---- Solutions ---- */

static bool begins_with_zero_bits(const char hash[32], unsigned bits)
{
    for (unsigned i = 0; i < bits; i++)
        if ((unsigned char)hash[i / 8] >> (7 - i % 8) & 1)
            return false;
    return true;
}

bool challenge_task_is_solved(mk_str task, unsigned bits, mk_str nonce)
{
    char text[CHALLENGE_TOKEN_LEN + CHALLENGE_NONCE_MAX], hash[32];
    struct mk_buf b = mk_buf_fixed(text, sizeof text);
    if (nonce.len == 0 || nonce.len > CHALLENGE_NONCE_MAX || bits > CHALLENGE_BITS_MAX)
        return false;
    for (size_t i = 0; i < nonce.len; i++)
        if (!mk_char_is_digit(nonce.p[i]))
            return false;
    mk_buf_add(&b, task);
    mk_buf_add(&b, nonce);
    if (b.failed)
        return false;
    mk_sha256(mk_buf_str(&b), hash);
    return begins_with_zero_bits(hash, bits);
}

/* ---- Targets ---- */

bool challenge_target_is_local(mk_str target)
{
    if (target.len == 0 || target.len > TARGET_MAX || target.p[0] != '/')
        return false;
    bool in_query = false; /* browsers read `\` as `/` in a path, but not in a query */
    for (size_t i = 0; i < target.len; i++) {
        in_query = in_query || target.p[i] == '?';
        if (target.p[i] <= ' ' || target.p[i] >= 0x7f || (target.p[i] == '\\' && !in_query))
            return false;
    }
    return !mk_str_starts(target, MK_STR("//")) && !mk_path_may_begin_with_slash(mk_str_skip(target, 1));
}
