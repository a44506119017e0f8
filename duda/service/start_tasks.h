/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the start tasks of services: see DUDA_START_TASK(). */
#ifndef DUDA_SERVICE_START_TASKS_H
#define DUDA_SERVICE_START_TASKS_H

#include "service/service_entry.h"

/* Marks the service as not ready, and spawns its first start task. Does nothing if it has none. */
int duda_start_tasks_begin(struct duda_worker_ctx *worker_ctx, const struct service_entry *service_entry);
/* Cancels the start tasks of the service that have not ended. */
void duda_start_tasks_cancel(struct duda_worker_ctx *worker_ctx, const struct service_entry *service_entry);

#endif
