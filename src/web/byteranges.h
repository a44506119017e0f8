/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a representation: 206 with one range or several, 416 (RFC 9110, section 14). */
#ifndef MK_WEB_BYTERANGES_H
#define MK_WEB_BYTERANGES_H

#include <monkey/handler.h>

#include "web/representation.h"
#include "web/request_type.h"

/* More ranges in one request are a flood: the field is ignored then. */
enum { MK_BYTERANGES_MAX = 16 };

/* MK_NEXT when Range is to be ignored: send the whole. */
enum mk_verdict mk_byteranges_serve(struct mk_request *request, struct mk_response *response,
                                    const struct mk_representation *r);

#endif
