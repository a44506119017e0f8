/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the keys that a section accepts. Their public part is in monkey/config.h. */
#ifndef MK_CONF_TABLE_H
#define MK_CONF_TABLE_H

#include <monkey/config.h>

#include "conf/tree.h"
#include "conf/words.h"

/* The context passed to a function that parses one value. */
struct mk_conf_ctx {
    struct mk_arena *arena; /* lives as long as the struct at `out` */
    struct mk_conf_report *report;
    const struct mk_conf_table *table;
    const struct mk_conf_key *key;     /* the key of the table; NULL for a free-form entry */
    const struct mk_conf_entry *entry; /* NULL for a default */
    void *out;                         /* the struct being filled */
    struct mk_config *config;          /* configuration of the plugin that reads the value; NULL: none */
};

/* Finds a key by name, ignoring case. If `follow`, returns the key that an alias stands for. NULL: none. */
const struct mk_conf_key *mk_conf_table_find(const struct mk_conf_table *t, mk_str name, bool follow);
/* Returns the first entry of a section with that key or an alias of it; NULL: none, or `s` is NULL. */
const struct mk_conf_entry *mk_conf_table_entry(const struct mk_conf_table *t,
                                                const struct mk_conf_section *s, mk_str key);
/* The same for the table of the section; NULL if the section has no table. */
const struct mk_conf_entry *mk_conf_table_find_entry(const struct mk_conf_section *s, mk_str key);
/* Returns the largest value that the key accepts. */
uint64_t mk_conf_table_max(const struct mk_conf_key *k);
/* Describes the values of the key: "a number from 1 to 64", "one of on, off". */
void mk_conf_table_describe(const struct mk_conf_key *k, struct mk_buf *out);

#endif
