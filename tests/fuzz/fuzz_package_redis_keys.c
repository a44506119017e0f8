/* SPDX-License-Identifier: Apache-2.0 */
/* Any command belongs to one slot, to none, or has two keys with different slots. */
#include <errno.h>
#include <redis/key_slot.h>
#include <stdint.h>

#include "base/assert.h"

enum { WORDS_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_one(const mk_str *words, size_t n, mk_str word)
{
    for (size_t i = 1; i < n; i++)
        if (words[i].p == word.p && words[i].len == word.len)
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct redis_crossslot clash = {.slot_a = -1};
    mk_str words[WORDS_MAX], rest = mk_str_of((const char *)data, size);
    size_t n = 0;
    bool has_slot = false;
    do
        words[n++] = mk_str_cut(&rest, '\n');
    while (rest.p && n < WORDS_MAX);
    int slot = redis_command_slot(words, n, &clash);
    MK_ASSERT(slot == -EXDEV || slot == REDIS_NO_KEY || (slot >= 0 && slot < REDIS_SLOTS));
    for (size_t i = 1; i < n; i++)
        has_slot = has_slot || redis_key_slot(words[i]) == slot;
    MK_ASSERT(slot < 0 || has_slot);
    if (slot == -EXDEV) {
        MK_ASSERT(is_one(words, n, clash.a) && is_one(words, n, clash.b) && clash.slot_a != clash.slot_b);
        MK_ASSERT(redis_key_slot(clash.a) == clash.slot_a && redis_key_slot(clash.b) == clash.slot_b);
    }
    return 0;
}
