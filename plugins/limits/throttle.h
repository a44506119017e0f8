/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the rate at which response bodies are sent. */
#ifndef LIMITS_THROTTLE_H
#define LIMITS_THROTTLE_H

#include "settings.h"

enum { LIMITS_THROTTLE_RULES_MAX = 8 }; /* per response */

/* Adds a rate-limiting filter to the response body, unless it is small enough to be sent at once. `rules` has
 * n elements, at most LIMITS_THROTTLE_RULES_MAX. Responses with an equal `path` share the limit of a rule
 * `by path`. If memory runs out, the response is not limited. */
void limits_throttle_response(struct limits_table *table, const struct limits_rule *const *rules, size_t n,
                              mk_str path, struct mk_request *request, struct mk_response *response);

#endif
