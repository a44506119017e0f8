/* SPDX-License-Identifier: Apache-2.0 */
/* What standard error of monkey-duda-test has for `monkey test`, beside messages: a line ahead of each test,
 * and one behind it. */
#ifndef DUDA_DEV_PROGRESS_H
#define DUDA_DEV_PROGRESS_H

#define DEV_TEST_PROGRESS_BEGIN "duda-test: begins " /* number, name */
#define DEV_TEST_PROGRESS_END   "duda-test: ends "   /* "ok" or "not ok" */

#endif
