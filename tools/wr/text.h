/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines that programs write for people. Any bytes may come: what does not look as expected does not
 * match. */
#ifndef WR_TEXT_H
#define WR_TEXT_H

#include "base/str.h"

/* No number that we take is larger: all whole numbers up to it are exact in a double. */
#define WR_NUMBER_MAX 9007199254740992.0

/* The next line without its end; false when there is none: a last one that has no end may have been cut in a
 * number. What is written over after a carriage return is not shown on a terminal either: it belongs to no
 * line. */
bool wr_text_next_line(mk_str *rest, mk_str *line);

/* Does the line begin as `pattern`? Numbers go to `out` in their order, as far as the pattern matched.
 *   %d  a whole number          %f  digits, perhaps with a fraction
 *   %t  a time such as 1.5ms, in microseconds: ns us ms s m h
 *   %b  a size such as 1.5KB, in bytes: B K M G T, with B or without, 1024 each
 *   %%  itself;  a blank: any number of spaces and tabs, none as well;  all else itself */
bool wr_text_scan(mk_str line, const char *pattern, double *out);

/* Digits, perhaps a fraction and perhaps an exponent, and no more; at most WR_NUMBER_MAX. */
bool wr_text_parse_number(mk_str text, double *out);

#endif
