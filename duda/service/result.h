/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the return value of a handler: see duda_fn in duda/service.h. */
#ifndef DUDA_SERVICE_RESULT_H
#define DUDA_SERVICE_RESULT_H

#include "service/duda_ctx.h"

/* Called when the handler has returned: logs failures, and replaces invalid results with 500. */
void duda_result_validate(struct duda_ctx *d);
/* Logs which function returned the status, for developers. */
void duda_result_log_source(struct duda_ctx *d);
/* Maps a negative errno value to a status. */
unsigned duda_result_errno_to_status(int error);

/* Adds the challenge that every 401 needs (RFC 9110, section 15.5.2), unless the handler has set one: the
 * default says that a bearer token is invalid (RFC 6750, section 3.1). */
void duda_result_add_www_authenticate(struct duda_ctx *d);

/* Has duda_reason() recorded a reason of this error? */
bool duda_result_has_reason(const struct duda_ctx *d, int error);
/* Returns the text that duda_reason() set for the result of the handler; NULL if there is none. */
const char *duda_result_reason(struct duda_ctx *d);

enum { DUDA_ERRNO_TEXT_SIZE = 96 };

/* Formats a negated errno value for messages, in the form of the source code: "-EEXIST (File exists)". Returns
 * `out`. */
const char *duda_errno_text(int result, char out[DUDA_ERRNO_TEXT_SIZE]);

#endif
