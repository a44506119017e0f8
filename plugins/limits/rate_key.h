/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIMITS_RATE_KEY_H
#define LIMITS_RATE_KEY_H

#include "settings.h"

/* Returns the key under which a request for the path is counted: a hash with the table's secret key. */
uint64_t limits_rate_key_hash(const struct limits_rule *rule, const struct limits_table *table,
                              const struct mk_request *request, mk_str path);

#endif
