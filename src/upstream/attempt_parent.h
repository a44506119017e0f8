/* SPDX-License-Identifier: Apache-2.0 */
/* The parent of the spans that a backend records: the span of the attempt (monkey/attempt.h). */
#ifndef MK_UPSTREAM_ATTEMPT_PARENT_H
#define MK_UPSTREAM_ATTEMPT_PARENT_H

#include "base/compiler.h"
#include "upstream/request_type.h"

/* Writes the span ID of the attempt into the `traceparent` of the request headers that wait to be sent. */
void mk_attempt_parent_set(struct mk_upstream_request *c) MK_COLD;

#endif
