/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the routes of a service as OpenAPI 3.1 in JSON. */
#ifndef DUDA_DEV_OPENAPI_H
#define DUDA_DEV_OPENAPI_H

#include "introspect.h"

void dev_openapi_write(const struct dev_introspection *d, struct mk_buf *out);

#endif
