/* SPDX-License-Identifier: Apache-2.0 */
/* A cache of compiled patterns. Patterns belong to services, which a reload may unload, so the cache compares
 * and copies their text. An entry lives until this object is unloaded: a program has few patterns. Chains of
 * the hash table only grow, so readers need no lock. */
#include "text/pattern.h"

#include <errno.h>
#include <monkey/mem.h>
#include <monkey/text.h>
#include <stdatomic.h>

enum { SLOTS = 64, PATTERNS_MAX = 4096 };

struct cached_pattern {
    struct cached_pattern *next;
    struct mk_regex *regex;
    size_t len;
    char text[];
};

static _Atomic(struct cached_pattern *) slots[SLOTS];
static atomic_uint n_patterns;

static _Atomic(struct cached_pattern *) *find_slot(mk_str pattern)
{
    uint64_t hash = mk_fnv1a(MK_FNV1A_INIT, pattern);
    return &slots[(hash ^ hash >> 32) % SLOTS];
}

static const struct cached_pattern *find_pattern(struct cached_pattern *first, mk_str pattern)
{
    while (first && (first->len != pattern.len || memcmp(first->text, pattern.p, pattern.len) != 0))
        first = first->next;
    return first;
}

static struct cached_pattern *compile_pattern(mk_str pattern, struct mk_regex_error *error)
{
    struct cached_pattern *p = mk_mem_alloc(sizeof *p + pattern.len);
    *error = (struct mk_regex_error){.code = -ENOMEM, .text = "out of memory"};
    if (!p)
        return NULL;
    p->regex = mk_regex_new(pattern, false, error);
    p->len = pattern.len;
    memcpy(p->text, pattern.p, pattern.len);
    if (p->regex)
        return p;
    mk_mem_free(p);
    return NULL;
}

static void free_pattern(struct cached_pattern *p)
{
    mk_regex_free(p->regex);
    mk_mem_free(p);
}

/* Two threads may compile the same pattern; both entries are valid. */
static void add_pattern(_Atomic(struct cached_pattern *) *slot, struct cached_pattern *p)
{
    p->next = atomic_load_explicit(slot, memory_order_relaxed);
    while (
        !atomic_compare_exchange_weak_explicit(slot, &p->next, p, memory_order_release, memory_order_relaxed))
        ;
}

bool duda_pattern_matches(const char *text_of_pattern, mk_str text)
{
    mk_str pattern = mk_str_from_c(text_of_pattern);
    _Atomic(struct cached_pattern *) *slot = find_slot(pattern);
    const struct cached_pattern *known =
        find_pattern(atomic_load_explicit(slot, memory_order_acquire), pattern);
    struct mk_regex_error error;
    if (known)
        return mk_regex_match(known->regex, text, NULL) == MK_REGEX_MATCH;
    struct cached_pattern *p = compile_pattern(pattern, &error);
    if (!p)
        return false;
    bool matches = mk_regex_match(p->regex, text, NULL) == MK_REGEX_MATCH;
    if (atomic_fetch_add(&n_patterns, 1) < PATTERNS_MAX)
        add_pattern(slot, p);
    else
        free_pattern(p);
    return matches;
}

int duda_pattern_check(const char *pattern, struct mk_regex_error *error)
{
    struct cached_pattern *p = compile_pattern(mk_str_from_c(pattern), error);
    if (!p)
        return error->code ? error->code : -EINVAL;
    free_pattern(p);
    return 0;
}

/* An application that embeds the server may unload this object. */
__attribute__((destructor)) static void free_patterns(void)
{
    for (size_t i = 0; i < SLOTS; i++) {
        struct cached_pattern *p = atomic_exchange(&slots[i], NULL);
        while (p) {
            struct cached_pattern *next = p->next;
            free_pattern(p);
            p = next;
        }
    }
}
