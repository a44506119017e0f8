/* SPDX-License-Identifier: Apache-2.0 */
/* Dates as HTTP writes them (RFC 9110, section 5.6.7). Times are seconds since 1970-01-01 00:00:00 UTC. */
#ifndef MK_HTTP_DATE_H
#define MK_HTTP_DATE_H

#include <monkey/text.h>

#include "base/str.h"

/* "Sun, 06 Nov 1994 08:49:37 GMT", without a NUL. A time outside of the years 0 to 9999 is written as the
 * nearest one inside. */
void mk_date_write(char out[MK_DATE_LEN], int64_t time);

/* Any of the three forms: IMF-fixdate, RFC 850, asctime; to the letter, but that the day of the week need not
 * be the right one. `now` decides the century of a two-digit year: more than 50 years ahead is the past. */
bool mk_date_parse(mk_str s, int64_t now, int64_t *time) MK_MUST_USE;

#endif
