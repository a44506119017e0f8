/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the spans of a finished request to records, and writes them into the pipe to monkey-otlp. */
#ifndef OTLP_SPANS_H
#define OTLP_SPANS_H

#include <monkey/plugin.h>
#include <monkey/trace.h>

/* Returns the number of spans that were lost, because the pipe is full or the request has too many. Never blocks. */
unsigned otlp_spans_write(int fd, const struct mk_access_record *access, const struct mk_trace *trace);

#endif
