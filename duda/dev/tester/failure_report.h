/* SPDX-License-Identifier: Apache-2.0 */
/* Formats failures of tests: a location that editors can open, the expected and the actual value. */
#ifndef DUDA_DEV_FAILURE_REPORT_H
#define DUDA_DEV_FAILURE_REPORT_H

#include <monkey/str.h>

/* Writes "  FILE:LINE: ", with the path relative to the current folder. */
void tester_report_location(const char *file, int line);
/* Both strings, starting shortly before the first difference. */
void tester_report_difference(const char *expression, mk_str got, mk_str expected);
/* `got` does not contain `part`. */
void tester_report_missing_part(const char *expression, mk_str got, mk_str part);
/* The beginning of a body, appended to the current line. */
void tester_report_body(mk_str content);

#endif
