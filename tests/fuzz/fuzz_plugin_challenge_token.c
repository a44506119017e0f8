/* SPDX-License-Identifier: Apache-2.0 */
/* Only tokens that the server has written are accepted, solutions consist of digits, and targets stay on the host. */
#include "base/assert.h"
#include "plugins/challenge/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct challenge_scope scope = {
    .key = {"0123456789abcdef0123456789abcdef", 32}, .host = {"site.example", 12}, .client = {.ip = {1}}};

/* Replaces the beginning of a valid token by the input. */
static void check_changed_token(mk_str text, enum challenge_kind kind)
{
    char valid[CHALLENGE_TOKEN_LEN], changed[CHALLENGE_TOKEN_LEN];
    struct challenge_token token = {.bits = 16, .time = 1790000000}, found;
    MK_ASSERT(challenge_token_write(&scope, kind, &token, valid));
    MK_ASSERT(challenge_token_read(&scope, kind, mk_str_of(valid, sizeof valid), &found));
    MK_ASSERT(found.bits == token.bits && found.time == token.time);
    memcpy(changed, valid, sizeof changed);
    memcpy(changed, text.p, text.len < sizeof changed ? text.len : sizeof changed);
    MK_ASSERT(challenge_token_read(&scope, kind, mk_str_of(changed, sizeof changed), &found) ==
              !memcmp(valid, changed, sizeof valid));
}

static void check_token(mk_str text)
{
    struct challenge_token token;
    char again[CHALLENGE_TOKEN_LEN];
    if (!challenge_token_read(&scope, CHALLENGE_PASS, text, &token))
        return;
    MK_ASSERT(challenge_token_write(&scope, CHALLENGE_PASS, &token, again));
    MK_ASSERT(mk_str_eq(text, mk_str_of(again, sizeof again)));
}

static void check_nonce(mk_str text)
{
    if (!challenge_task_is_solved(MK_STR("task"), 0, text))
        return;
    MK_ASSERT(text.len >= 1 && text.len <= CHALLENGE_NONCE_MAX);
    for (size_t i = 0; i < text.len; i++)
        MK_ASSERT(mk_char_is_digit(text.p[i]));
}

static void check_target(mk_str text)
{
    if (!challenge_target_is_local(text))
        return;
    MK_ASSERT(text.len >= 1 && text.p[0] == '/');
    MK_ASSERT(text.len == 1 || (text.p[1] != '/' && text.p[1] != '\\'));
    for (size_t i = 0; i < text.len; i++)
        MK_ASSERT(text.p[i] > ' ' && text.p[i] < 0x7f);
    mk_str path = mk_str_cut(&text, '?');
    MK_ASSERT(!memchr(path.p, '\\', path.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str text = mk_str_of((const char *)data, size);
    check_token(text);
    check_changed_token(text, CHALLENGE_TASK);
    check_changed_token(text, CHALLENGE_PASS);
    check_nonce(text);
    check_target(text);
    return 0;
}
