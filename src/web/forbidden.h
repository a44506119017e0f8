/* SPDX-License-Identifier: Apache-2.0 */
/* The error log's line about a file that workers may not read: without it, a 403 is a riddle. */
#ifndef MK_WEB_FORBIDDEN_H
#define MK_WEB_FORBIDDEN_H

#include "web/request_type.h"

/* `e`: why it cannot be opened; 0: it is neither a file nor a folder. One warning a second and worker, so that clients cannot
 * fill the log; further ones are for debugging. */
MK_COLD void mk_forbidden_log(const struct mk_request *r, mk_str path, const char *root, mk_err e);

#endif
