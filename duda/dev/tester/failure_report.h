/* SPDX-License-Identifier: Apache-2.0 */
/* How a test says why it failed: a place that editors can follow, what was expected, what came. */
#ifndef DUDA_DEV_FAILURE_REPORT_H
#define DUDA_DEV_FAILURE_REPORT_H

#include <monkey/str.h>

/* "  FILE:LINE: ", the file as it is seen from here. */
void tester_report_location(const char *file, int line);
/* Both texts, from shortly before they differ on. */
void tester_report_difference(const char *what, mk_str got, mk_str wanted);
/* `got` does not hold `part`. */
void tester_report_missing_part(const char *what, mk_str got, mk_str part);
/* The beginning of a content, behind something in the same line. */
void tester_report_body(mk_str content);

#endif
