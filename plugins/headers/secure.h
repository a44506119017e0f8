/* SPDX-License-Identifier: Apache-2.0 */
/* Security headers, chosen by one word. */
#ifndef HEADERS_SECURE_H
#define HEADERS_SECURE_H

#include "condition.h"

enum secure { SECURE_OFF, SECURE_ON, SECURE_STRICT };

/* Adds those that the response lacks. */
void headers_secure_apply(enum secure how, struct response_facts *facts);

#endif
