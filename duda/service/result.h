/* SPDX-License-Identifier: Apache-2.0 */
/* What a handler has returned: duda_fn in duda/service.h. */
#ifndef DUDA_SERVICE_RESULT_H
#define DUDA_SERVICE_RESULT_H

#include "service/duda_ctx.h"

/* The handler has returned: logs failures, and makes 500 of what is no result. */
void duda_result_validate(struct duda_ctx *d);
/* Logs which function has returned the status, for developers. */
void duda_result_log_source(struct duda_ctx *d);
/* The status of a negated errno value. */
unsigned duda_result_errno_to_status(int error);

/* Names the challenge that each 401 needs (RFC 9110, section 15.5.2), unless the handler has: the result says that a token is
 * no good (RFC 6750, section 3.1). */
void duda_result_add_www_authenticate(struct duda_ctx *d);

/* What duda_reason() has said of the result of the handler; NULL: nothing. */
const char *duda_result_reason(const struct duda_ctx *d);

#endif
