/* SPDX-License-Identifier: Apache-2.0 */
/* The serialized form of a job in a store. */
#ifndef DUDA_JOBS_JOB_RECORD_H
#define DUDA_JOBS_JOB_RECORD_H

#include <monkey/buf.h>
#include <stdint.h>

struct job_record {
    int64_t enqueued_ms;
    mk_str unique, error_text; /* may be absent */
    mk_str text;
};

enum { JOB_ERROR_MAX = 300, JOB_RECORD_HEAD = 100 };

void job_record_format(struct mk_buf *out, const struct job_record *r);
/* The strings of *r are slices of `in`. Returns false if the record is malformed. */
bool job_record_parse(mk_str in, struct job_record *r);

#endif
