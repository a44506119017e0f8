/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that tell browsers to be careful, by one word. */
#ifndef HEADERS_SECURE_H
#define HEADERS_SECURE_H

#include "condition.h"

enum secure { SECURE_OFF, SECURE_ON, SECURE_STRICT };

/* Those that the response does not have. */
void headers_secure_apply(enum secure how, struct response_facts *facts);

#endif
