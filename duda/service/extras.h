/* SPDX-License-Identifier: Apache-2.0 */
/* State of a handler that most handlers do not need: attached data, and the reason of an error. Allocated on the
 * heap, because duda_arena_rewind() may free memory of the handler. */
#ifndef DUDA_SERVICE_EXTRAS_H
#define DUDA_SERVICE_EXTRAS_H

#include "service/duda_ctx.h"

/* Returns d->extras, and allocates it first if necessary; NULL if out of memory. */
struct duda_extras *duda_extras_get(struct duda_ctx *d);
/* Calls the destructors of attached data, and frees d->extras. */
void duda_extras_free(struct duda_ctx *d) DUDA_COLD;

#endif
