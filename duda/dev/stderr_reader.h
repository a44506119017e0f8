/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the standard error of a process that runs a service, splits it into lines, and extracts crash reports
 * (crash.h). */
#ifndef DUDA_DEV_STDERR_READER_H
#define DUDA_DEV_STDERR_READER_H

#include <monkey/buf.h>
#include <stdbool.h>

struct dev_stderr_reader {
    void (*on_line)(void *ctx, mk_str line);
    void (*on_crash)(void *ctx); /* called when `crash` has a complete report */
    void (*on_stall)(void *ctx); /* called when `held` has a complete report; may be NULL */
    void *ctx;
    struct mk_buf line;  /* incomplete line */
    struct mk_buf crash; /* report of the running worker, or of the last one that died; empty: none */
    struct mk_buf held;  /* report of a handler that blocks the loop */
    bool in_report, in_held, has_crashed;
    bool has_held; /* `held` has a report of the running worker */
    bool
        has_died; /* the worker of `crash` has died: the next report, or death without a report, replaces it */
};

void dev_stderr_reader_init(struct dev_stderr_reader *h, void (*on_line)(void *ctx, mk_str line),
                            void (*on_crash)(void *ctx), void *ctx);
void dev_stderr_reader_free(struct dev_stderr_reader *h);
/* Discards the output of the last process. Call it before a new one starts. */
void dev_stderr_reader_reset(struct dev_stderr_reader *h);
/* Records that a worker died, with or without a report. */
void dev_stderr_reader_worker_died(struct dev_stderr_reader *h);
/* Reads the available data, up to the capacity of two pipes, from a non-blocking descriptor. At the end of
 * the stream, closes it and sets it to -1. */
void dev_stderr_reader_read(struct dev_stderr_reader *h, int *fd);
/* Appends the data to `out` unparsed. */
void dev_stderr_reader_append_to(int *fd, struct mk_buf *out);
/* Passes complete lines to on_line(); `rest` keeps an incomplete line until its rest or the end of the stream
 * arrives. */
void dev_stderr_reader_read_lines(int *fd, struct mk_buf *rest, void (*on_line)(void *ctx, mk_str line),
                                  void *ctx);
/* Formats a report for people: the cause, and the stack with source lines. */
void dev_stderr_reader_format_crash(const struct dev_stderr_reader *h, struct mk_buf *out);
void dev_stderr_reader_format_stall(const struct dev_stderr_reader *h, struct mk_buf *out);

#endif
