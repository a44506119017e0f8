/* SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

#include <errno.h>
#include <monkey/mem.h>
#include <unistd.h>

bool otlp_queue_init(struct otlp_queue *q, size_t capacity)
{
    *q = (struct otlp_queue){.records = mk_mem_zalloc(capacity, sizeof *q->records), .capacity = capacity};
    return q->records;
}

void otlp_queue_free(struct otlp_queue *q)
{
    mk_mem_free(q->records);
    q->records = NULL;
}

/* The unused records after the last one, up to the end of the ring. */
static struct otlp_record *free_space(struct otlp_queue *q, size_t *n)
{
    size_t at = (q->first + q->n) % q->capacity, until_end = q->capacity - at, unused = q->capacity - q->n;
    *n = unused < until_end ? unused : until_end;
    return &q->records[at];
}

long otlp_queue_read(struct otlp_queue *q, int fd)
{
    long total = 0;
    for (size_t space; q->n < q->capacity;) {
        struct otlp_record *to = free_space(q, &space);
        ssize_t n = read(fd, to, space * sizeof *to);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < (ssize_t)sizeof *to)
            return n == 0 && total == 0 ? -1 : total;
        q->n += (size_t)n / sizeof *to;
        total += n / (ssize_t)sizeof *to;
    }
    return total;
}

const struct otlp_record *otlp_queue_at(const struct otlp_queue *q, size_t i)
{
    return &q->records[(q->first + i) % q->capacity];
}

void otlp_queue_remove(struct otlp_queue *q, size_t n)
{
    q->first = (q->first + n) % q->capacity;
    q->n -= n;
}
