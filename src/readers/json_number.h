/* SPDX-License-Identifier: Apache-2.0 */
/* The syntax of numbers in JSON. */
#ifndef MK_READERS_JSON_NUMBER_H
#define MK_READERS_JSON_NUMBER_H

#include <monkey/str.h>

/* Returns the length of the number at the start of `s`; 0 if there is none. */
size_t mk_json_number_len(mk_str s, bool *is_integer);

#endif
