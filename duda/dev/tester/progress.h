/* SPDX-License-Identifier: Apache-2.0 */
/* Progress lines on standard error of monkey-duda-test for `monkey test`: one before each test, and one after
 * it. */
#ifndef DUDA_DEV_PROGRESS_H
#define DUDA_DEV_PROGRESS_H

#define DEV_TEST_PROGRESS_BEGIN "duda-test: begins " /* number, name */
#define DEV_TEST_PROGRESS_END   "duda-test: ends "   /* "ok" or "not ok" */

#endif
