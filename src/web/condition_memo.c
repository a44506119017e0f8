/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/mem.h>

#include "web/condition.h"

enum { ENTRIES = 64, TEXT_MAX = 238 };

struct memo_entry {
    const struct mk_glob_set *set; /* NULL: unused */
    uint8_t len;
    bool matches;
    char text[TEXT_MAX];
};

struct mk_condition_memo {
    struct memo_entry entries[ENTRIES];
};

static uint64_t load_u64(const char *p)
{
    uint64_t n;
    memcpy(&n, p, sizeof n);
    return n;
}

/* Chooses an entry by three parts of a text of at least 24 bytes. Clients may choose texts that share an
 * entry: then each search costs what it would cost without the memo. */
static size_t entry_index(const struct mk_glob_set *set, mk_str text)
{
    uint64_t n = load_u64(text.p) ^ load_u64(text.p + text.len / 2) ^ load_u64(text.p + text.len - 8);
    return (size_t)((n ^ (uintptr_t)set ^ text.len) * 0x9e3779b97f4a7c15u >> 58);
}

bool mk_condition_memo_match(struct mk_condition_memo **memo, const struct mk_glob_set *set, mk_str text)
{
    if (text.len > TEXT_MAX || (!*memo && !(*memo = mk_mem_zalloc(1, sizeof **memo))))
        return mk_glob_set_matches(set, text);
    struct memo_entry *e = &(*memo)->entries[entry_index(set, text)];
    if (e->set == set && e->len == text.len && memcmp(e->text, text.p, text.len) == 0)
        return e->matches;
    e->set = set;
    e->len = (uint8_t)text.len;
    memcpy(e->text, text.p, text.len);
    e->matches = mk_glob_set_matches(set, text);
    return e->matches;
}
