/* SPDX-License-Identifier: Apache-2.0 */
/* Prints structs as text: the effective configuration, in the format that the reader accepts. */
#ifndef MK_CONF_PRINT_H
#define MK_CONF_PRINT_H

#include "conf/table.h"

/* Writes the section with every key that has a value, defaults included, so that reading and binding it again
 * gives the same struct. Omits aliases, deprecated keys and ignored keys; prints unset strings and lists as
 * comments. */
void mk_conf_print_section(const struct mk_conf_table *table, const void *in, struct mk_buf *out);

/* Writes one indented entry with its line end, and escapes references in the value. `value` is the text that
 * reading the entry returns, quotes included (see mk_conf_words_quote_text()). */
void mk_conf_print_entry(mk_str key, mk_str value, struct mk_buf *out);

/* Writes the first value of the key as in a configuration. False: the key has no value. */
bool mk_conf_print_value(const struct mk_conf_key *key, const void *in, struct mk_buf *out);

/* Is `name` another name of this key, under which the key is printed? */
struct mk_conf_aliases {
    bool (*is_alias)(const void *ctx, mk_str name, mk_str key);
    const void *ctx;
};

/* Copies the first line of a printed configuration, without its line end, but writes values of the environment, which are often
 * secrets, as references: in the values of the keys that refer to them, and if they are long, everywhere. A reference may
 * replace the rest of a list that continues in the next lines. Returns the number of bytes that were copied or replaced. */
size_t mk_conf_print_line_references(mk_str text, const struct mk_conf_env_values *values,
                                     const struct mk_conf_aliases *aliases, struct mk_buf *out);

#endif
