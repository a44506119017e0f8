/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration as it was written: sections in order, entries in order, each with its place. It knows no
 * key and no type; those come with the tables of bind.h. All of it lives in the arena given to the reader. */
#ifndef MK_CONF_TREE_H
#define MK_CONF_TREE_H

#include "conf/report.h"

struct mk_conf_entry {
    struct mk_conf_entry *next;
    mk_str key;   /* as written; compare without case */
    mk_str value; /* references replaced, no blanks at its ends; empty (not absent) if none is given */
    struct mk_conf_place at; /* of the key */
    unsigned value_column;   /* where the value begins; behind the key if there is none */
    bool broken;             /* the value could not be made out, which is reported: do not look at it */
};

struct mk_conf_section {
    struct mk_conf_section *next;
    mk_str name; /* as written, without the brackets; compare without case */
    struct mk_conf_place at;
    struct mk_conf_entry *first, *last;
    size_t n;
};

/* A tree of zeroes is an empty one. */
struct mk_conf_tree {
    struct mk_conf_section *first, *last;
    size_t n;
};

/* Append; NULL when memory is out. Text is not copied, the entry is. */
struct mk_conf_section *mk_conf_tree_add_section(struct mk_conf_tree *t, struct mk_arena *a, mk_str name,
                                                 const struct mk_conf_place *at) MK_MUST_USE;
struct mk_conf_entry *mk_conf_tree_add_entry(struct mk_conf_section *s, struct mk_arena *a,
                                             const struct mk_conf_entry *like) MK_MUST_USE;

/* The first section of that name, NULL if there is none. */
const struct mk_conf_section *mk_conf_tree_find(const struct mk_conf_tree *t, mk_str name);
/* The first entry with that key, NULL if there is none (or no section: `s` may be NULL). */
const struct mk_conf_entry *mk_conf_tree_entry(const struct mk_conf_section *s, mk_str key);

/* The place of the value, or of `part`, if that is a slice of a value that holds no replaced reference. */
struct mk_conf_place mk_conf_tree_place(const struct mk_conf_entry *e, mk_str part);

#endif
