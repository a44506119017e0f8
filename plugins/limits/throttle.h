/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the rate at which content leaves. */
#ifndef LIMITS_THROTTLE_H
#define LIMITS_THROTTLE_H

#include "settings.h"

enum { LIMITS_THROTTLE_RULES_MAX = 8 }; /* for one response */

/* Puts a filter before the content of the response, if it is more than may be sent at once. `rules` holds n
 * of them, at most LIMITS_THROTTLE_RULES_MAX. `path` is counted. Without memory the content is not slowed down. */
void limits_throttle_response(struct limits_table *table, const struct limits_rule *const *rules, size_t n,
                              mk_str path, struct mk_request *request, struct mk_response *response);

#endif
