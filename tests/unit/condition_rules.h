/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of conditions, and the comparison of their index with the evaluation of each list. Independent of cmocka: fuzz
 * targets also use it. */
#ifndef MK_UNIT_CONDITION_RULES_H
#define MK_UNIT_CONDITION_RULES_H

#include "base/assert.h"
#include "conf/table.h"
#include "setup/condition_index.h"

enum { CONDITION_RULES_MAX = 64 };

struct condition_rules {
    struct mk_conf_report report;
    const struct mk_conditions *lists[CONDITION_RULES_MAX];
    size_t n;
};

/* Appends the conditions, unless they are invalid. */
static inline void condition_rules_add(struct condition_rules *rules, struct mk_arena *arena, mk_str text)
{
    static const struct mk_conf_entry entry = {.key = MK_STR("Deny"), .at = {.file = MK_STR("t"), .line = 1}};
    struct mk_conf_ctx ctx = {.arena = arena, .report = &rules->report, .entry = &entry};
    struct mk_conditions *list = mk_conditions_new(&ctx);
    MK_ASSERT(list && rules->n < CONDITION_RULES_MAX);
    if (mk_conditions_parse(list, &ctx, mk_arena_copy(arena, text), ~0u,
                            true)) /* the list refers to the text */
        rules->lists[rules->n++] = list;
}

static inline bool condition_rules_match(const struct condition_rules *rules, size_t i, struct mk_request *r,
                                         mk_str path)
{
    return mk_conditions_match_path(rules->lists[i], r, path, 0) == MK_REGEX_MATCH;
}

/* Asserts that the index skips no list that matches, from any position on. Returns how many lists it skips from the
 * first one on. */
static inline size_t condition_rules_check(const struct condition_rules *rules,
                                           const struct mk_condition_index *index, struct mk_request *r,
                                           mk_str path)
{
    for (size_t at = 0; at <= rules->n; at++) {
        size_t next = mk_condition_index_next(index, r, path, at);
        MK_ASSERT(next >= at && next <= rules->n);
        for (size_t i = at; i < next; i++)
            MK_ASSERT(!condition_rules_match(rules, i, r, path));
    }
    return mk_condition_index_next(index, r, path, 0);
}

#endif
