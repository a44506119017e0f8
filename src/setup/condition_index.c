/* SPDX-License-Identifier: Apache-2.0 */
/* Builds indexes of conditions (monkey/condition.h). */
#include "setup/condition_index.h"

#include "setup/config.h"

/* A shorter run costs as much as its lists. */
enum { RUN_MIN = 3 };

/* ---- Conditions that can be searched together ---- */

/* Does the condition compare texts with globs, substrings and regular expressions of its own? */
static bool is_text_search(const struct mk_condition *c)
{
    const unsigned subjects = MK_CONDITION_CONTAINS | MK_CONDITION_HOST | MK_CONDITION_QUERY |
                              MK_CONDITION_HEADER | MK_CONDITION_COOKIE | MK_CONDITION_PARAMETER;
    bool has_files = c->n_globs > c->has_own_set;
    return c->subject & subjects && !c->is_negated && !has_files;
}

static bool is_same_name(const struct mk_condition *a, const struct mk_condition *b)
{
    return a->subject == MK_CONDITION_HEADER ? mk_str_eq_nocase(a->name, b->name)
                                             : mk_str_eq(a->name, b->name);
}

/* Returns the condition of the list that can be searched together with `like`; NULL: none. */
static const struct mk_condition *find_similar(const struct mk_conditions *list,
                                               const struct mk_condition *like)
{
    for (const struct mk_condition *c = list ? list->first : NULL; c; c = c->next)
        if (c->subject == like->subject && is_text_search(c) &&
            c->has_regex_without_texts == like->has_regex_without_texts && is_same_name(c, like))
            return c;
    return NULL;
}

/* ---- Runs ---- */

struct builder {
    struct mk_arena *arena;
    const struct mk_conditions *const *lists;
    size_t n;
};

/* What the conditions of a run have together. */
struct extent {
    size_t end, n_globs, bytes;
};

static bool is_within_limits(const struct extent *e)
{
    return e->bytes < MK_GLOB_SET_MAX && e->n_globs < UINT16_MAX;
}

/* Stands for the regular expressions of a run, if the texts of their matches are unknown: only a request without a text
 * is skipped. */
static enum mk_regex_result match_any_text(const struct mk_regex *regex, mk_str text,
                                           struct mk_regex_captures *out)
{
    (void)regex;
    (void)text;
    (void)out;
    return MK_REGEX_MATCH;
}

static const struct mk_regex_ops any_text_ops = {.match = match_any_text};
static struct mk_regex any_text = {.ops = &any_text_ops};
static struct mk_regex *any_texts[] = {&any_text};

/* Finds the lists from `at` on that have a condition similar to `like`, which is in the first one. */
static struct extent measure_run(const struct builder *b, size_t at, const struct mk_condition *like)
{
    struct extent e = {.end = at};
    for (const struct mk_condition *c; e.end < b->n && (c = find_similar(b->lists[e.end], like)); e.end++) {
        struct extent more = e;
        more.n_globs += c->n_own_globs;
        for (size_t i = 0; i < c->n_own_globs; i++)
            more.bytes += c->own_globs[i].text.len;
        if (!is_within_limits(&more))
            break;
        e.n_globs = more.n_globs;
        e.bytes = more.bytes;
    }
    return e;
}

/* Fills `globs` with the patterns of the run, one of which matches a text if a condition matches it. */
static size_t collect_globs(const struct builder *b, size_t at, const struct extent *extent,
                            struct mk_condition_run *run, const struct mk_condition *like,
                            struct mk_glob *globs)
{
    size_t n = 0;
    for (size_t i = at; i < extent->end; i++) {
        const struct mk_condition *c = find_similar(b->lists[i], like);
        run->condition.matches_empty |= c->matches_empty;
        for (size_t j = 0; j < c->n_own_globs; j++)
            globs[n++] = c->own_globs[j];
    }
    return n;
}

static struct mk_condition_run *build_run(const struct builder *b, size_t at, const struct extent *extent,
                                          const struct mk_condition *like)
{
    struct mk_condition_run *run = mk_arena_zalloc(b->arena, 1, sizeof *run);
    struct mk_glob *globs = mk_arena_zalloc(b->arena, extent->n_globs + 1, sizeof *globs);
    const struct mk_glob_set **set = mk_arena_zalloc(b->arena, 1, sizeof *set);
    if (!run || !globs || !set)
        return NULL;
    run->end = extent->end;
    run->any.first = &run->condition;
    run->condition.subject = like->subject;
    run->condition.name = like->name;
    run->condition.header_id = like->header_id;
    run->condition.globs = set;
    size_t n = collect_globs(b, at, extent, run, like, globs);
    if (like->has_regex_without_texts) {
        run->condition.regexes = any_texts;
        run->condition.n_regexes = 1;
        return run;
    }
    if (n == 0)
        return run;
    run->condition.n_globs = 1;
    mk_err e = mk_glob_set_build(b->arena, globs, n, mk_condition_ignores_case(like->subject), set);
    return e == 0 ? run : NULL;
}

/* Finds the longest run that begins with the list. */
static const struct mk_condition *longest_run(const struct builder *b, size_t at, struct extent *longest)
{
    const struct mk_condition *best = NULL;
    longest->end = at;
    for (const struct mk_condition *c = b->lists[at] ? b->lists[at]->first : NULL; c; c = c->next) {
        struct extent e = is_text_search(c) ? measure_run(b, at, c) : (struct extent){.end = at};
        if (e.end > longest->end) {
            *longest = e;
            best = c;
        }
    }
    return best;
}

struct mk_condition_index *mk_condition_index_build(struct mk_arena *arena,
                                                    const struct mk_conditions *const *lists, size_t n)
{
    struct builder b = {.arena = arena, .lists = lists, .n = n};
    struct mk_condition_index *index = mk_arena_zalloc(arena, 1, sizeof *index + n * sizeof index->runs[0]);
    if (!index)
        return NULL;
    index->n = n;
    for (size_t at = 0; at < n;) {
        struct extent e;
        const struct mk_condition *like = longest_run(&b, at, &e);
        if (e.end - at < RUN_MIN) {
            at++;
            continue;
        }
        index->runs[at] = build_run(&b, at, &e, like);
        if (!index->runs[at])
            return NULL;
        at = e.end;
    }
    return index;
}

struct mk_condition_index *mk_condition_index_new(struct mk_config *config,
                                                  const struct mk_conditions *const *lists, size_t n)
{
    return mk_condition_index_build(&config->generation->arena, lists, n);
}
