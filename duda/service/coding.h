/* SPDX-License-Identifier: Apache-2.0 */
/* Content-Encoding of requests (RFC 9110, section 8.4): Duda decodes none. */
#ifndef DUDA_SERVICE_CODING_H
#define DUDA_SERVICE_CODING_H

#include "service/duda_type.h"

/* 0; 415: the content is compressed, so that it cannot be read as what its Content-Type says. The response then
 * says what is accepted. */
int duda_coding_check(struct duda *d);

#endif
