/* SPDX-License-Identifier: Apache-2.0 */
/* Prints failures of tests: a location that editors can open, the expected value and the actual value. */
#ifndef DUDA_DEV_FAILURE_REPORT_H
#define DUDA_DEV_FAILURE_REPORT_H

#include <duda/test.h>

/* Prints " FILE:LINE: ", with the path relative to the current folder. */
void tester_report_location(const char *file, int line);
/* Prints both strings, starting shortly before the first difference. */
void tester_report_difference(const char *expression, mk_str got, mk_str expected);
/* Prints that `got` does not contain `part`. */
void tester_report_missing_part(const char *expression, mk_str got, mk_str part);
/* Prints two JSON values as they are: "expected 1, got "2"". */
void tester_report_json(mk_str got, mk_str expected);
/* Prints the target of a redirect and, unless it is an error page of the server, the beginning of the body on the
 * current line, and the reason on the next lines. */
void tester_report_response(const struct duda_test_response *response, bool is_error_page);

#endif
