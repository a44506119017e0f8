/* SPDX-License-Identifier: Apache-2.0 */
/* Background tasks that start when their request has ended. */
#ifndef DUDA_SERVICE_AFTER_RESPONSE_H
#define DUDA_SERVICE_AFTER_RESPONSE_H

#include "service/duda_ctx.h"

/* Cancels the tasks of the service. Call it before the DUDA_STOP() functions of the service run, and before
 * the packages that it uses stop. */
void duda_after_response_cancel(struct duda_worker_ctx *worker_ctx, const struct duda_service_ref *owner);

#endif
