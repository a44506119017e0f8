/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the text of a key into its struct field. */
#ifndef MK_CONF_FIELD_H
#define MK_CONF_FIELD_H

#include "conf/table.h"

/* Can the key's type be stored in a field of this size? If not, the table is wrong. */
bool mk_conf_field_has_valid_size(const struct mk_conf_key *k);
/* Parses `value` into the field of ctx->key (aliases are followed), or reports why the value is invalid. */
void mk_conf_field_set(const struct mk_conf_ctx *ctx, mk_str value);
/* Clears a field to which mk_conf_field_set() would append: a list, or a field with its own parser. */
void mk_conf_field_clear(const struct mk_conf_key *k, void *out);

/* Returns the value of a field of type NUM, SIZE, TIME or ENUM. */
uint64_t mk_conf_field_load(const struct mk_conf_key *k, const void *in);

#endif
