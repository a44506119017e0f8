/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in a [REDIS] section. */
#ifndef DUDA_REDIS_JOBS_BACKEND_H
#define DUDA_REDIS_JOBS_BACKEND_H

#include <duda/jobs_backend.h>

extern const struct duda_jobs_ops redis_jobs_backend;

#endif
