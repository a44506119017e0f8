/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the value of a key, and stores it in the struct field of that key. */
#ifndef MK_CONF_FIELD_H
#define MK_CONF_FIELD_H

#include "conf/table.h"

/* Is the size of the key's field valid for the key's type? If not, the table is wrong. */
bool mk_conf_field_has_valid_size(const struct mk_conf_key *k);
/* Parses `value` into the field of ctx->key, or reports why the value is invalid. The key must not be an
 * alias. */
void mk_conf_field_set(const struct mk_conf_ctx *ctx, mk_str value);
/* Clears the field of a key if mk_conf_field_set() may append to it: a list of words, or a value with a
 * parser of its own. Leaves other fields unchanged. */
void mk_conf_field_clear(const struct mk_conf_key *k, void *out);

/* Returns the value of a field of type NUM, SIZE, TIME or ENUM. */
uint64_t mk_conf_field_load(const struct mk_conf_key *k, const void *in);

#endif
