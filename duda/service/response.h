/* SPDX-License-Identifier: Apache-2.0 */
/* For responses that are formatted directly into d->out. */
#ifndef DUDA_SERVICE_RESPONSE_H
#define DUDA_SERVICE_RESPONSE_H

#include "service/duda_ctx.h"

/* Returns 0 if the caller may append to d->out; otherwise the error that the calling response function
 * returns. */
int duda_response_begin_append(struct duda_ctx *d);
/* Call it after appending to d->out. */
int duda_response_end_append(struct duda_ctx *d);
/* Like duda_header_add(), but also accepts Duda's own cookies. */
int duda_response_add_header(struct duda_ctx *d, const char *name, mk_str value);

/* Returns whether the handler has set a status, written a body, or opened a tunnel. */
bool duda_response_is_set(struct duda_ctx *d);

/* Returns whether the client prefers HTML to JSON, like a browser that opens a page. */
bool duda_client_prefers_html(struct duda_ctx *d);

#endif
