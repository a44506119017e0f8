/* SPDX-License-Identifier: Apache-2.0 */
/* The traces of requests (monkey/trace.h), and the IDs of spans. */
#ifndef MK_WEB_TRACE_H
#define MK_WEB_TRACE_H

#include <monkey/trace.h>

#include "base/compiler.h"

struct mk_vhost_tracing;

/* For hosts that take part in traces. */
extern const struct mk_vhost_tracing mk_trace_of_vhost;
/* Writes a random span ID. */
void mk_trace_generate_span_id(struct mk_request *r, unsigned char id[8]);

#endif
