/* SPDX-License-Identifier: Apache-2.0 */
/* Dates and times of the proleptic Gregorian calendar, years 1 to 9999. */
#ifndef DUDA_TEXT_CALENDAR_H
#define DUDA_TEXT_CALENDAR_H

#include <monkey/str.h>

/* Consumes "2026-03-01", and sets *days to the number of days since 1970-01-01. */
bool duda_calendar_parse_date(mk_str *text, int64_t *days);

#endif
