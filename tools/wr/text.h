/* SPDX-License-Identifier: Apache-2.0 */
/* Scans human-readable output of programs. The input may contain any bytes; unexpected text simply does not
 * match. */
#ifndef WR_TEXT_H
#define WR_TEXT_H

#include "base/str.h"

/* The largest number accepted: all smaller integers are exact in a double. */
#define WR_NUMBER_MAX 9007199254740992.0

/* Gets the next line without its newline. Returns false at the end and for a last line without newline, which
 * may be truncated within a number. Text overwritten after a carriage return is skipped, as on a terminal. */
bool wr_text_next_line(mk_str *rest, mk_str *line);

/* Returns whether the line starts with `pattern`. Stores the numbers in `out`, as far as the pattern matches.
 *   %d  an integer           %f  digits, perhaps with a fraction
 *   %t  a time such as 1.5ms, in microseconds: ns us ms s m h
 *   %b  a size such as 1.5KB, in bytes: B K M G T, with or without B, 1024 each
 *   %%  a percent sign;  a space: zero or more spaces and tabs;  other characters match themselves */
bool wr_text_scan(mk_str line, const char *pattern, double *out);

/* Parses digits with an optional fraction and exponent. Returns false if the text contains anything else or
 * if the number is above WR_NUMBER_MAX. */
bool wr_text_parse_number(mk_str text, double *out);

#endif
