/* SPDX-License-Identifier: Apache-2.0 */
/* The security headers that the key `Secure` selects with `on` or `strict`. */
#ifndef HEADERS_SECURITY_HEADERS_H
#define HEADERS_SECURITY_HEADERS_H

#include "condition.h"

enum secure { SECURE_OFF, SECURE_ON, SECURE_STRICT };

/* Adds missing security headers. */
void headers_security_headers_apply(enum secure how, struct response_facts *facts);

#endif
