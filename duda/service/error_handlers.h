/* SPDX-License-Identifier: Apache-2.0 */
/* Calls error handlers: see duda/error.h. */
#ifndef DUDA_SERVICE_ERROR_HANDLERS_H
#define DUDA_SERVICE_ERROR_HANDLERS_H

#include "service/duda_ctx.h"

/* Calls the error handlers of d->extras in turn, on the stack of a fiber. Returns the result of the handler
 * that responded; DUDA_NEXT: none did, and the server sends its error page for extras->error_status. */
int duda_error_handlers_run(struct duda_ctx *d) DUDA_COLD;

#endif
