/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the requests of one worker into its slot. A request that a handler or a hook may delay
 * has a record from the beginning, which shows that it is in flight; a static file only gets one at its end. A record
 * starts in the ring of all requests; those of failed and slow requests move to the other ring. */
#ifndef MK_RECORDER_RECORDER_WRITER_H
#define MK_RECORDER_RECORDER_WRITER_H

#include "recorder/recorder_store.h"

struct mk_recorder_writer;

struct mk_recorder_limits {
    uint64_t slow_ms;
    bool with_query;
};

/* Returns NULL if out of memory. The slot is then released. */
struct mk_recorder_writer *mk_recorder_writer_new(const struct mk_recorder_store *s,
                                                  struct mk_recorder_slot *slot,
                                                  const struct mk_recorder_limits *limits);
/* Releases the slot. NULL is allowed. */
void mk_recorder_writer_free(struct mk_recorder_writer *w);
/* For struct mk_request_observer. */
void mk_recorder_writer_begin(struct mk_request *request, void *writer);
void mk_recorder_writer_end(const struct mk_access_record *record, void *writer);

#endif
