/* SPDX-License-Identifier: Apache-2.0 */
/* Progress lines that monkey-duda-test prints on standard error for `monkey test`: one before and one after
 * each test. */
#ifndef DUDA_DEV_PROGRESS_H
#define DUDA_DEV_PROGRESS_H

#define DEV_TEST_PROGRESS_BEGIN "duda-test: begins " /* number, name */
#define DEV_TEST_PROGRESS_END   "duda-test: ends "   /* "ok" or "not ok" */

#endif
