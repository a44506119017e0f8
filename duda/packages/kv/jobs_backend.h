/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in a [KV] section. */
#ifndef DUDA_KV_JOBS_BACKEND_H
#define DUDA_KV_JOBS_BACKEND_H

#include <duda/jobs_backend.h>

extern const struct duda_jobs_ops duda_kv_jobs_backend;

#endif
