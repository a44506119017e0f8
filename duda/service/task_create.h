/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DUDA_SERVICE_TASK_CREATE_H
#define DUDA_SERVICE_TASK_CREATE_H

#include <duda/task.h>

#include "service/duda_ctx.h"

/* Like duda_task_spawn(), but the task does not start until the caller calls duda_wake(). */
int duda_task_create(struct duda_worker_ctx *worker_ctx, const struct duda_task *task, struct duda_ctx **out);
/* Sets the source line that messages about the task name. */
void duda_task_set_source_pos(struct duda_ctx *task, const char *file, int line);

#endif
