/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON (RFC 8259) that programs print, in place: no copy, no memory, bounded depth and length.
 */
#ifndef WR_JSON_H
#define WR_JSON_H

#include "base/str.h"

enum { WR_JSON_DEPTH = 20, WR_JSON_LEN = 1 << 20 };

/* The first object that begins a line of `output` and is strict JSON; the text around it is
 * ignored. The functions below take only objects from here. */
bool wr_json_find(mk_str output, mk_str *object);
/* The value of a member, with what it is written with; the first of its name. The name may not need an
 * escape. */
bool wr_json_member(mk_str object, mk_str name, mk_str *value);
/* The number at the end of a path of names, such as "latency_us/p50"; false when it is not there, is not a
 * number, is negative or larger than WR_NUMBER_MAX. */
bool wr_json_number(mk_str object, const char *path, double *out);

#endif
