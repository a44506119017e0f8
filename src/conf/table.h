/* SPDX-License-Identifier: Apache-2.0 */
/* What a section may hold, as data: the tables of monkey/config.h, from inside. */
#ifndef MK_CONF_TABLE_H
#define MK_CONF_TABLE_H

#include <monkey/config.h>

#include "conf/tree.h"
#include "conf/words.h"

/* What a function that reads one value is told. */
struct mk_conf_spot {
    struct mk_arena *arena; /* lives as long as the struct */
    struct mk_conf_report *report;
    const struct mk_conf_table *table;
    const struct mk_conf_key *key;     /* NULL for an entry of free form */
    const struct mk_conf_entry *entry; /* NULL for a default */
    void *out;                         /* the struct that is being filled */
};

/* Where a slice of the key or of the value stands; an absent one means the whole value. */
struct mk_conf_place mk_conf_spot_place(const struct mk_conf_spot *spot, mk_str part);

/* The key of that name, without case, or what it is an alias of if `follow`; NULL if there is none. */
const struct mk_conf_key *mk_conf_table_find(const struct mk_conf_table *t, mk_str name, bool follow);
/* The largest value that the key takes. */
uint64_t mk_conf_table_max(const struct mk_conf_key *k);
/* What a value of the key looks like: "a number from 1 to 64", "one of on, off". */
void mk_conf_table_form(const struct mk_conf_key *k, struct mk_buf *out);

#endif
