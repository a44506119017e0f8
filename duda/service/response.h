/* SPDX-License-Identifier: Apache-2.0 */
/* For answers with a form of their own, which are written into d->out. */
#ifndef DUDA_SERVICE_RESPONSE_H
#define DUDA_SERVICE_RESPONSE_H

#include "service/duda_ctx.h"

/* 0: d->out may be written to; else what the function that says something answers. */
int duda_response_begin_write(struct duda_ctx *d);
/* It was written to. */
int duda_response_end_write(struct duda_ctx *d);
/* Sets a type that outlives the request. */
int duda_response_set_type_nocopy(struct duda_ctx *d, mk_str type);

/* As duda_header_add(), also for cookies of Duda itself. */
int duda_response_add_header(struct duda_ctx *d, const char *name, mk_str value);

#endif
