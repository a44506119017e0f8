/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON parser (RFC 8259) for the output of load clients: works in place without allocation, limits depth
 * and length. */
#ifndef WR_JSON_H
#define WR_JSON_H

#include "base/str.h"

enum { WR_JSON_DEPTH = 20, WR_JSON_LEN = 1 << 20 };

/* Finds the first valid JSON object at the start of a line; ignores all other text. The functions below
 * accept only such an object. */
bool wr_json_find_object(mk_str text, mk_str *object);
/* Finds the first member with that name; *value includes quotes or brackets. The name must not need an
 * escape. */
bool wr_json_member(mk_str object, mk_str name, mk_str *value);
/* Reads the number at a path of names such as "latency_us/p50". Returns false if it is missing, not a number,
 * negative or above WR_NUMBER_MAX. */
bool wr_json_number(mk_str object, const char *path, double *out);

#endif
