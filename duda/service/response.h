/* SPDX-License-Identifier: Apache-2.0 */
/* For responses that are formatted directly into d->out. */
#ifndef DUDA_SERVICE_RESPONSE_H
#define DUDA_SERVICE_RESPONSE_H

#include "service/duda_ctx.h"

/* 0: d->out may be written; otherwise the error that the calling response function returns. */
int duda_response_begin_write(struct duda_ctx *d);
/* Call it after writing to d->out. */
int duda_response_end_write(struct duda_ctx *d);
/* Sets Content-Type without a copy: `type` must outlive the request. */
int duda_response_set_type_nocopy(struct duda_ctx *d, mk_str type);

/* Like duda_header_add(), but also for Duda's own cookies. */
int duda_response_add_header(struct duda_ctx *d, const char *name, mk_str value);

#endif
