/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/tree.h"

struct mk_conf_section *mk_conf_tree_add_section(struct mk_conf_tree *t, struct mk_arena *a, mk_str name,
                                                 const struct mk_conf_source_pos *at)
{
    struct mk_conf_section *s = mk_arena_alloc(a, sizeof *s);
    if (!s)
        return NULL;
    *s = (struct mk_conf_section){.name = name, .at = *at};
    if (t->last)
        t->last->next = s;
    else
        t->first = s;
    t->last = s;
    t->n++;
    return s;
}

struct mk_conf_entry *mk_conf_tree_add_entry(struct mk_conf_section *s, struct mk_arena *a,
                                             const struct mk_conf_entry *like)
{
    struct mk_conf_entry *e = mk_arena_alloc(a, sizeof *e);
    if (!e)
        return NULL;
    *e = *like;
    e->next = NULL;
    if (s->last)
        s->last->next = e;
    else
        s->first = e;
    s->last = e;
    s->n++;
    return e;
}

const struct mk_conf_section *mk_conf_tree_find(const struct mk_conf_tree *t, mk_str name)
{
    const struct mk_conf_section *s = t->first;
    while (s && !mk_str_eq_nocase(s->name, name))
        s = s->next;
    return s;
}

struct mk_conf_source_pos mk_conf_tree_value_pos(const struct mk_conf_entry *e, mk_str part)
{
    struct mk_conf_source_pos at = e->at;
    uintptr_t p = (uintptr_t)part.p, line = (uintptr_t)at.source.p;
    /* Compared as integers, because a slice of an expanded value does not point into the line. */
    if (part.p && at.source.p && p >= line && p <= line + at.source.len)
        at.column = (unsigned)(p - line) + 1;
    else
        at.column = e->value_column;
    return at;
}
