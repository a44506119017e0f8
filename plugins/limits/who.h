/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIMITS_WHO_H
#define LIMITS_WHO_H

#include "settings.h"

/* Whom the rule counts the request for: a hash under the key of the table. */
uint64_t limits_who(const struct limits_rule *rule, const struct limits_table *table,
                    const struct mk_request *request);

#endif
