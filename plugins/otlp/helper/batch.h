/* SPDX-License-Identifier: Apache-2.0 */
/* Writes spans as an ExportTraceServiceRequest in the JSON encoding of OTLP. */
#ifndef OTLP_BATCH_H
#define OTLP_BATCH_H

#include <monkey/buf.h>

#include "queue.h"

/* Writes the first `n` spans of the queue. `service` is the attribute service.name. */
void otlp_batch_write(struct mk_buf *out, const struct otlp_queue *q, size_t n, mk_str service);

#endif
