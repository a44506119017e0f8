/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the context of a request. */
#ifndef DUDA_SERVICE_REQUEST_CTX_H
#define DUDA_SERVICE_REQUEST_CTX_H

#include <monkey/router.h>

#include "service/duda_ctx.h"

/* Returns a context with the parameters of the matched route. It lives until the request ends, and is freed
 * then. NULL if out of memory. */
struct duda_ctx *duda_request_ctx_new(struct mk_request *request, const struct mk_router_match *match);

#endif
