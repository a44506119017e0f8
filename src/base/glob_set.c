/* SPDX-License-Identifier: Apache-2.0 */
#include "base/glob_set.h"

#include <errno.h>
#include <monkey/mem.h>

enum { BYTES = 256, SEEN_MAX = 64, NO_GLOB = UINT16_MAX };

/* How the longest literal of a glob decides whether the glob matches. */
enum glob_kind {
    GLOB_ANYWHERE, /* *text* */
    GLOB_WHOLE,    /* text */
    GLOB_PREFIX,   /* text* */
    GLOB_SUFFIX,   /* *text */
    GLOB_GENERAL,  /* the whole glob must be matched */
};

struct glob_entry {
    mk_str text;
    uint32_t literal_len;
    uint16_t next; /* another glob with a literal that ends in the same state; NO_GLOB: none */
    uint8_t kind;
    uint8_t seen; /* GLOB_GENERAL: the bit that says that the glob was tried */
};

/* States are ordered: plain ones, from `first_check` on those where globs must be checked, and from
 * `first_hit` on those that decide the search. */
struct mk_glob_set {
    const uint16_t *next; /* by state << shift | class */
    unsigned shift;
    uint32_t first_check, first_hit, n_states;
    uint16_t classes[BYTES];
    const uint16_t *checks; /* by state: the first glob to check; NO_GLOB: none */
    const uint16_t *links;  /* by state: the state of the next shorter suffix with globs to check; 0: none */
    struct glob_entry *globs;
    const struct mk_glob *others; /* globs that are matched one by one */
    size_t n_others;
    bool nocase;
};

static char fold_char(char c, bool nocase)
{
    return nocase ? mk_char_lower(c) : c;
}

static bool glob_matches(mk_str glob, mk_str text, bool nocase)
{
    return nocase ? mk_str_match_nocase(text, glob) : mk_str_match(text, glob);
}

/* ---- Literals ---- */

static mk_str longest_literal(const struct mk_glob *glob)
{
    mk_str best = MK_STR("");
    if (glob->is_substring)
        return glob->text;
    for (size_t i = 0, from = 0; i <= glob->text.len; i++) {
        if (i < glob->text.len && glob->text.p[i] != '*' && glob->text.p[i] != '?')
            continue;
        if (i - from > best.len)
            best = mk_str_of(glob->text.p + from, i - from);
        from = i + 1;
    }
    return best;
}

static enum glob_kind kind_of_glob(const struct mk_glob *glob, mk_str literal)
{
    mk_str text = glob->text;
    if (glob->is_substring)
        return GLOB_ANYWHERE;
    if (text.len == literal.len)
        return GLOB_WHOLE;
    bool begins = text.p[0] == '*', ends = text.p[text.len - 1] == '*';
    if (text.len == literal.len + 2 && begins && ends)
        return GLOB_ANYWHERE;
    if (text.len != literal.len + 1)
        return GLOB_GENERAL;
    return begins ? GLOB_SUFFIX : ends ? GLOB_PREFIX : GLOB_GENERAL;
}

/* ---- Building ---- */

/* The automaton before its states are ordered. `next` is 0 where a state has no child yet: no child is the
 * root. */
struct builder {
    struct mk_glob_set *set;
    size_t n, n_classes;
    uint16_t *next, *fail, *order, *checks, *links, *numbers;
    bool *is_hit;
};

static bool is_indexed(const struct mk_glob *glob, mk_str literal, unsigned *n_general)
{
    if (literal.len == 0)
        return false;
    return kind_of_glob(glob, literal) != GLOB_GENERAL || ++*n_general <= SEEN_MAX;
}

/* Gives each byte of the literals a class; all other bytes share class 0. */
static void assign_classes(struct builder *b, mk_str literal)
{
    struct mk_glob_set *s = b->set;
    for (size_t i = 0; i < literal.len; i++) {
        uint8_t byte = (uint8_t)fold_char(literal.p[i], s->nocase);
        if (!s->classes[byte])
            s->classes[byte] = (uint16_t)++b->n_classes;
    }
}

static uint16_t *next_state(const struct builder *b, size_t state, size_t class)
{
    return &b->next[(state << b->set->shift) + class];
}

/* Adds the states of a literal. Returns the last one. */
static size_t add_literal(struct builder *b, mk_str literal)
{
    size_t state = 0;
    for (size_t i = 0; i < literal.len; i++) {
        uint16_t *next = next_state(b, state, b->set->classes[(uint8_t)literal.p[i]]);
        if (!*next)
            *next = (uint16_t)b->n++;
        state = *next;
    }
    return state;
}

static void add_glob(struct builder *b, const struct mk_glob *glob, mk_str literal, size_t index,
                     unsigned *n_general)
{
    size_t state = add_literal(b, literal);
    enum glob_kind kind = kind_of_glob(glob, literal);
    struct glob_entry *g = &b->set->globs[index];
    *g = (struct glob_entry){.text = glob->text, .literal_len = (uint32_t)literal.len, .kind = (uint8_t)kind};
    g->next = b->checks[state];
    if (kind == GLOB_ANYWHERE) {
        b->is_hit[state] = true;
        return;
    }
    if (kind == GLOB_GENERAL)
        g->seen = (uint8_t)(*n_general)++;
    b->checks[state] = (uint16_t)index;
}

/* Visits the states in breadth-first order. A missing child becomes that of the longest proper suffix, so that
 * the search never goes back. */
static void connect_states(struct builder *b)
{
    size_t head = 0, tail = 1;
    b->order[0] = 0;
    while (head < tail) {
        size_t state = b->order[head++], fail = b->fail[state];
        b->is_hit[state] = b->is_hit[state] || b->is_hit[fail];
        b->links[state] = b->checks[fail] != NO_GLOB ? b->fail[state] : b->links[fail];
        for (size_t c = 0; c <= b->n_classes; c++) {
            uint16_t *next = next_state(b, state, c), other = *next_state(b, fail, c);
            if (*next) {
                b->fail[*next] = state ? other : 0;
                b->order[tail++] = *next;
            } else {
                *next = state ? other : 0;
            }
        }
    }
}

/* 0: plain, 1: with globs to check, 2: decides the search. */
static int rank_of_state(const struct builder *b, size_t state)
{
    return b->is_hit[state] ? 2 : b->checks[state] != NO_GLOB || b->links[state];
}

static void number_states(struct builder *b)
{
    uint32_t number = 0;
    for (int rank = 0; rank <= 2; rank++) {
        for (size_t i = 0; i < b->n; i++)
            if (rank_of_state(b, i) == rank)
                b->numbers[i] = (uint16_t)number++;
        if (rank == 0)
            b->set->first_check = number;
        else if (rank == 1)
            b->set->first_hit = number;
    }
    b->set->n_states = number;
}

static mk_err copy_states(struct builder *b, struct mk_arena *arena)
{
    struct mk_glob_set *s = b->set;
    uint16_t *next = mk_arena_zalloc(arena, b->n << s->shift, sizeof *next);
    uint16_t *checks = mk_arena_zalloc(arena, 2 * b->n, sizeof *checks), *links = checks + b->n;
    if (!next || !checks)
        return -ENOMEM;
    for (size_t i = 0; i < b->n; i++) {
        size_t to = b->numbers[i];
        checks[to] = b->checks[i];
        links[to] = b->links[i] ? b->numbers[b->links[i]] : 0;
        for (size_t c = 0; c <= b->n_classes; c++)
            next[(to << s->shift) + c] = b->numbers[*next_state(b, i, c)];
    }
    s->next = next;
    s->checks = checks;
    s->links = links;
    return 0;
}

static void free_builder(struct builder *b)
{
    mk_mem_free(b->next);
    mk_mem_free(b->fail);
    mk_mem_free(b->is_hit);
}

static bool init_builder(struct builder *b, size_t max_states)
{
    b->n = 1;
    b->next = mk_mem_zalloc(max_states << b->set->shift, sizeof *b->next);
    b->fail = mk_mem_zalloc(5 * max_states, sizeof *b->fail);
    b->is_hit = mk_mem_zalloc(max_states, sizeof *b->is_hit);
    if (!b->next || !b->fail || !b->is_hit)
        return false;
    b->order = b->fail + max_states;
    b->links = b->order + max_states;
    b->numbers = b->links + max_states;
    b->checks = b->numbers + max_states;
    memset(b->checks, 0xff, max_states * sizeof *b->checks);
    return true;
}

/* Adds the globs to the automaton, or to the list of those that are matched one by one. */
static void add_globs(struct builder *b, const struct mk_glob *globs, size_t n, struct mk_glob *others)
{
    unsigned n_general = 0, n_seen = 0;
    size_t index = 0;
    for (size_t i = 0; i < n; i++) {
        mk_str literal = longest_literal(&globs[i]);
        if (is_indexed(&globs[i], literal, &n_general))
            add_glob(b, &globs[i], literal, index++, &n_seen);
        else
            others[b->set->n_others++] = globs[i];
    }
    b->set->others = others;
}

static void share_classes_of_letters(struct mk_glob_set *s)
{
    for (int c = 'A'; s->nocase && c <= 'Z'; c++)
        s->classes[c] = s->classes[(uint8_t)mk_char_lower((char)c)];
}

static mk_err build_automaton(struct builder *b, struct mk_arena *arena, const struct mk_glob *globs,
                              size_t n, size_t max_states)
{
    struct mk_glob_set *s = b->set;
    struct mk_glob *others = mk_arena_zalloc(arena, n + 1, sizeof *others);
    s->globs = mk_arena_zalloc(arena, n + 1, sizeof *s->globs);
    if (!others || !s->globs || !init_builder(b, max_states))
        return -ENOMEM;
    add_globs(b, globs, n, others);
    connect_states(b);
    number_states(b);
    return copy_states(b, arena);
}

MK_COLD mk_err mk_glob_set_build(struct mk_arena *arena, const struct mk_glob *globs, size_t n, bool nocase,
                                 const struct mk_glob_set **out)
{
    struct mk_glob_set *s = mk_arena_zalloc(arena, 1, sizeof *s);
    struct builder b = {.set = s};
    size_t states = 1;
    if (!s)
        return -ENOMEM;
    s->nocase = nocase;
    for (size_t i = 0; i < n; i++) {
        mk_str literal = longest_literal(&globs[i]);
        states += literal.len;
        if (states > MK_GLOB_SET_MAX || i >= NO_GLOB)
            return -EFBIG;
        assign_classes(&b, literal);
    }
    while ((size_t)1 << s->shift <= b.n_classes)
        s->shift++;
    share_classes_of_letters(s);
    mk_err e = build_automaton(&b, arena, globs, n, states);
    free_builder(&b);
    *out = s;
    return e;
}

/* ---- Matching ---- */

/* Does the glob match, whose literal ends at `end`? */
static bool entry_matches(const struct mk_glob_set *s, const struct glob_entry *g, mk_str text, size_t end,
                          uint64_t *seen)
{
    switch (g->kind) {
    case GLOB_WHOLE:
        return end == text.len && g->literal_len == text.len;
    case GLOB_PREFIX:
        return end == g->literal_len;
    case GLOB_SUFFIX:
        return end == text.len;
    default:
        break;
    }
    if (*seen >> g->seen & 1) /* the result does not depend on the position */
        return false;
    *seen |= (uint64_t)1 << g->seen;
    return glob_matches(g->text, text, s->nocase);
}

static bool state_matches(const struct mk_glob_set *s, size_t state, mk_str text, size_t end, uint64_t *seen)
{
    if (state >= s->first_hit)
        return true;
    for (; state; state = s->links[state])
        for (uint16_t i = s->checks[state]; i != NO_GLOB; i = s->globs[i].next)
            if (entry_matches(s, &s->globs[i], text, end, seen))
                return true;
    return false;
}

static bool others_match(const struct mk_glob_set *s, mk_str text)
{
    for (size_t i = 0; i < s->n_others; i++)
        if (s->others[i].is_substring || glob_matches(s->others[i].text, text, s->nocase))
            return true; /* only an empty substring is not in the automaton */
    return false;
}

bool mk_glob_set_matches(const struct mk_glob_set *s, mk_str text)
{
    const uint16_t *next = s->next;
    const unsigned shift = s->shift;
    const uint32_t first_check = s->first_check;
    size_t state = 0;
    uint64_t seen = 0;
    for (size_t i = 0; i < text.len; i++) {
        state = next[(state << shift) + s->classes[(uint8_t)text.p[i]]];
        if (MK_UNLIKELY(state >= first_check) && state_matches(s, state, text, i + 1, &seen))
            return true;
    }
    return s->n_others && others_match(s, text);
}

bool mk_glob_set_is_slow(const struct mk_glob_set *s, size_t text_len)
{
    return s->n_states > 1 && text_len >= 24;
}
