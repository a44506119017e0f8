/* SPDX-License-Identifier: Apache-2.0 */
/* Byte ranges: 206 with one or more ranges, and 416 (RFC 9110, section 14). */
#ifndef MK_WEB_BYTERANGES_H
#define MK_WEB_BYTERANGES_H

#include <monkey/handler.h>

#include "web/representation.h"
#include "web/request_type.h"

/* A request with more ranges is considered abuse: Range is ignored. */
enum { MK_BYTERANGES_MAX = 16 };

/* MK_NEXT: ignore Range and send the whole representation. */
enum mk_verdict mk_byteranges_serve(struct mk_request *request, struct mk_response *response,
                                    const struct mk_representation *r);

#endif
