/* SPDX-License-Identifier: Apache-2.0 */
/* One field of a struct, filled from text as its key says. */
#ifndef MK_CONF_FIELD_H
#define MK_CONF_FIELD_H

#include "conf/table.h"

/* Is the size of the field one that its type can be stored in? If not, the table is wrong. */
bool mk_conf_field_fits(const struct mk_conf_key *k);
/* Reads `value` into the field of spot->key (aliases followed), or reports why it cannot. */
void mk_conf_field_set(const struct mk_conf_spot *spot, mk_str value);
/* Forgets what the field holds, if setting it would add to that. */
void mk_conf_field_clear(const struct mk_conf_key *k, void *out);

/* What a field of NUM, SIZE, TIME or ENUM holds. */
uint64_t mk_conf_field_load(const struct mk_conf_key *k, const void *in);

#endif
