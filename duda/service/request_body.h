/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the encoding of request bodies. */
#ifndef DUDA_SERVICE_REQUEST_BODY_H
#define DUDA_SERVICE_REQUEST_BODY_H

#include "service/duda_ctx.h"

/* Checks Content-Encoding (RFC 9110, section 8.4), because Duda does not decode request bodies. Returns 0, or
 * 415 if the body is compressed; the response then names the accepted encodings. */
int duda_request_body_check_coding(struct duda_ctx *d);

#endif
