/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration as written: sections and entries in order, each with its position. The tree may contain
 * unknown keys and invalid values: conf/bind.h checks keys and values. Everything is allocated in the
 * reader's arena. */
#ifndef MK_CONF_TREE_H
#define MK_CONF_TREE_H

#include "conf/report.h"

struct mk_conf_entry {
    struct mk_conf_entry *next;
    mk_str key;   /* as written; compare ignoring case */
    mk_str value; /* references expanded, blanks trimmed; empty (not absent) if there is no value */
    struct mk_conf_source_pos at; /* of the key */
    unsigned value_column;        /* start of the value; the end of the key if there is no value */
    bool broken;                  /* the value is invalid, which was reported: do not use it */
};

struct mk_conf_table;

struct mk_conf_section {
    struct mk_conf_section *next;
    const struct mk_conf_table *table; /* its keys; NULL: not assigned yet, or there are none */
    mk_str name;                       /* as written, without the brackets; compare ignoring case */
    struct mk_conf_source_pos at;
    struct mk_conf_entry *first, *last;
    size_t n;
};

/* A value of the environment that a reference has inserted. */
struct mk_conf_env_value {
    const struct mk_conf_env_value *next;
    mk_str key; /* in whose value the reference is, directly or by a variable of @SET */
    mk_str name, value;
    size_t n_bytes; /* of the value, without quotes, backslashes and blanks */
};

/* Lists by the first counted byte of the value. */
struct mk_conf_env_values {
    const struct mk_conf_env_value *by_byte[64];
};

/* A zeroed tree is empty. */
struct mk_conf_tree {
    struct mk_conf_section *first, *last;
    size_t n;
    struct mk_conf_env_values env_values;
};

/* These two functions append a section or a copy of an entry, and return NULL when out of memory. They do not
 * copy the text of names, keys and values. */
struct mk_conf_section *mk_conf_tree_add_section(struct mk_conf_tree *t, struct mk_arena *a, mk_str name,
                                                 const struct mk_conf_source_pos *at) MK_MUST_USE;
struct mk_conf_entry *mk_conf_tree_add_entry(struct mk_conf_section *s, struct mk_arena *a,
                                             const struct mk_conf_entry *like) MK_MUST_USE;

/* Returns the first section of that name, NULL if there is none. */
const struct mk_conf_section *mk_conf_tree_find(const struct mk_conf_tree *t, mk_str name);

/* Returns the position of `part` if it is a slice of the source line; otherwise the position of the entry's
 * value, for example because `part` is a slice of a value whose references were expanded. */
struct mk_conf_source_pos mk_conf_tree_value_pos(const struct mk_conf_entry *e, mk_str part);

#endif
