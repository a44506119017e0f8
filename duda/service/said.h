/* SPDX-License-Identifier: Apache-2.0 */
/* For answers with a form of their own, which are written into d->out. */
#ifndef DUDA_SERVICE_SAID_H
#define DUDA_SERVICE_SAID_H

#include "service/duda_type.h"

/* 0: d->out may be written to; else what the function that says something answers. */
int duda_said_begin(struct duda *d);
/* It was written to. */
int duda_said_end(struct duda *d);
/* Sets a type that outlives the request. */
int duda_said_type(struct duda *d, mk_str type);

/* As duda_add(), also for cookies of Duda itself. */
int duda_said_add(struct duda *d, const char *name, mk_str value);

#endif
