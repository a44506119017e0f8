/* SPDX-License-Identifier: Apache-2.0 */
/* A simple router that tries all routes: the reference for tests of the real router. It supports routes with
 * at most one method, and no escapes. */
#ifndef MK_UNIT_HTTP_NAIVE_H
#define MK_UNIT_HTTP_NAIVE_H

#include <monkey/router.h>
#include <regex.h>
#include <stdlib.h>

/* The types of parameters from the most to the least specific; literal segments precede them. */
static const struct {
    const char *written, *expression;
} naive_types[] = {
    {"<uint>", "^[0-9]+$"},
    {"<int>", "^-?[0-9]+$"},
    {"<number>", "^-?[0-9]+(\\.[0-9]+)?$"},
    {"<hex>", "^[0-9a-fA-F]+$"},
    {"<alpha>", "^[a-zA-Z]+$"},
    {"<word>", "^[a-zA-Z0-9_]+$"},
    {"<slug>", "^[a-zA-Z0-9_-]+$"},
    {"", "^.+$"},
};
enum { NAIVE_TYPES = sizeof naive_types / sizeof naive_types[0] };

static regex_t naive_regexes[NAIVE_TYPES];

static inline void naive_init(void)
{
    for (size_t i = 0; i < NAIVE_TYPES; i++)
        if (regcomp(&naive_regexes[i], naive_types[i].expression, REG_EXTENDED | REG_NOSUB))
            abort();
}

static inline void naive_fini(void)
{
    for (size_t i = 0; i < NAIVE_TYPES; i++)
        regfree(&naive_regexes[i]);
}

static inline bool naive_is(size_t type, mk_str s)
{
    char buffer[256];
    if (s.len >= sizeof buffer)
        abort();
    memcpy(buffer, s.p, s.len);
    buffer[s.len] = '\0';
    return regexec(&naive_regexes[type], buffer, 0, NULL, 0) == 0;
}

/* Returns the rank of a segment: literals come first, then the parameter types in order, then the rest
 * parameter. */
static inline size_t naive_rank(mk_str segment)
{
    if (segment.len == 0 || (segment.p[0] != ':' && segment.p[0] != '*'))
        return 0;
    if (segment.p[0] == '*')
        return NAIVE_TYPES + 1;
    size_t at = mk_str_find(segment, '<');
    mk_str type = at == MK_STR_NONE ? MK_STR("") : mk_str_skip(segment, at);
    size_t i = 0;
    while (!mk_str_eq(type, mk_str_from_c(naive_types[i].written)))
        i++;
    return i + 1;
}

static inline bool naive_matches(mk_str pattern, mk_str path)
{
    while (pattern.p && path.p) {
        mk_str p = mk_str_cut(&pattern, '/');
        size_t rank = naive_rank(p);
        if (rank > NAIVE_TYPES)
            return true;
        mk_str s = mk_str_cut(&path, '/');
        if (rank ? !naive_is(rank - 1, s) : !mk_str_eq(p, s))
            return false;
    }
    return !pattern.p && !path.p;
}

/* Returns whether `a` is more specific than `b`, if both match. */
static inline bool naive_is_better(mk_str a, mk_str b)
{
    while (a.p && b.p) {
        size_t x = naive_rank(mk_str_cut(&a, '/')), y = naive_rank(mk_str_cut(&b, '/'));
        if (x != y)
            return x < y;
    }
    return false;
}

/* Returns how well the methods of a route match: 3 exactly, 2 HEAD by GET, 1 any, 0 not at all. */
static inline int naive_suits(mk_str methods, mk_str method)
{
    if (methods.len == 0)
        return 1;
    if (mk_str_eq(methods, method))
        return 3;
    return mk_str_eq(methods, MK_STR("GET")) && mk_str_eq(method, MK_STR("HEAD")) ? 2 : 0;
}

static inline mk_str naive_methods(mk_str *route)
{
    size_t at = mk_str_find(*route, ' ');
    mk_str methods = at == MK_STR_NONE ? MK_STR("") : mk_str_first(*route, at);
    *route = at == MK_STR_NONE ? *route : mk_str_skip(*route, at + 1);
    return methods;
}

/* Returns the number of the matching route, or -405 or -404. */
static inline int naive_find(const mk_str *routes, int n, mk_str method, mk_str path)
{
    int best = -404, best_suits = 0;
    mk_str best_pattern = MK_STR_NULL;
    for (int i = 0; i < n; i++) {
        mk_str pattern = routes[i], methods = naive_methods(&pattern);
        int suits = naive_suits(methods, method);
        if (!naive_matches(pattern, path))
            continue;
        if (!suits) {
            best = best == -404 ? -405 : best;
            continue;
        }
        bool is_better = best < 0 || naive_is_better(pattern, best_pattern);
        if (is_better || (!naive_is_better(best_pattern, pattern) && suits > best_suits)) {
            best = i;
            best_suits = suits;
            best_pattern = pattern;
        }
    }
    return best;
}

#endif
