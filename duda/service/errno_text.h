/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DUDA_SERVICE_ERRNO_TEXT_H
#define DUDA_SERVICE_ERRNO_TEXT_H

enum { DUDA_ERRNO_TEXT_SIZE = 96 };

/* Formats a negated errno value for messages, in the form of the source code: "-EEXIST (File exists)". Returns
 * `out`. */
const char *duda_errno_text(int result, char out[DUDA_ERRNO_TEXT_SIZE]);

#endif
