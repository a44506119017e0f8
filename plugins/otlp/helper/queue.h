/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of spans that wait for the collector: a ring of fixed size. */
#ifndef OTLP_QUEUE_H
#define OTLP_QUEUE_H

#include "record.h"

struct otlp_queue {
    struct otlp_record *records;
    size_t capacity, first, n;
};

bool otlp_queue_init(struct otlp_queue *q, size_t capacity);
void otlp_queue_free(struct otlp_queue *q);
/* Reads records from a non-blocking pipe until the pipe is empty or the queue is full. Returns the number of records, or
 * -1 at the end of the file. */
long otlp_queue_read(struct otlp_queue *q, int fd);
/* The i-th record from the front. */
const struct otlp_record *otlp_queue_at(const struct otlp_queue *q, size_t i);
/* Removes `n` records from the front. */
void otlp_queue_remove(struct otlp_queue *q, size_t n);

#endif
