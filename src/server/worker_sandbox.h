/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a worker process into the sandbox of its configuration. */
#ifndef MK_SERVER_WORKER_SANDBOX_H
#define MK_SERVER_WORKER_SANDBOX_H

#include "base/log.h"
#include "setup/config_generation_type.h"

/* Limits what this process and all programs of the worker can gain. Call it before the process changes its user,
 * which takes the right to do so. */
void mk_worker_sandbox_prepare(const struct mk_config_generation *g);
/* Restricts the files, ports and capabilities of the calling process as the configuration tells. Logs errors. Needs no_new_privs. */
mk_err mk_worker_sandbox_enter(const struct mk_config_generation *g, struct mk_log *log) MK_MUST_USE;
/* The last part of the sandbox: filters the system calls of all threads. Call it after the worker has started, because it
 * has called listen(), and before it serves. */
mk_err mk_worker_sandbox_filter_calls(const struct mk_config_generation *g, struct mk_log *log) MK_MUST_USE;

#endif
