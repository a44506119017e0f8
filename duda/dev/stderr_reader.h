/* SPDX-License-Identifier: Apache-2.0 */
/* What a process with a service says on its standard error: lines, and among them reports of crashes, which
 * are taken out (crash.h). */
#ifndef DUDA_DEV_STDERR_READER_H
#define DUDA_DEV_STDERR_READER_H

#include <monkey/buf.h>
#include <stdbool.h>

struct dev_stderr_reader {
    void (*on_line)(void *ctx, mk_str line);
    void (*on_crash)(void *ctx); /* a report is complete, in `crash` */
    void (*on_stall)(void *ctx); /* a handler holds the loop: `held`; NULL: nobody wants to know */
    void *ctx;
    struct mk_buf line; /* as far as it came */
    struct mk_buf
        crash; /* the report of the worker that runs, or of the one that died last; empty: it left none */
    struct mk_buf held;
    bool in_report, in_held, has_crashed;
    bool has_held; /* that worker has held its loop */
    bool has_died; /* that worker has died: the next report, or the next death without one, takes its place */
};

void dev_stderr_reader_init(struct dev_stderr_reader *h, void (*on_line)(void *ctx, mk_str line),
                            void (*on_crash)(void *ctx), void *ctx);
void dev_stderr_reader_free(struct dev_stderr_reader *h);
/* Another process comes: forgets what the last one said. */
void dev_stderr_reader_reset(struct dev_stderr_reader *h);
/* A worker has died, with a report or without one. */
void dev_stderr_reader_worker_died(struct dev_stderr_reader *h);
/* Reads what is there, up to what two pipes hold, from a descriptor that does not block, which is closed, and
 * becomes -1, at the end. */
void dev_stderr_reader_read(struct dev_stderr_reader *h, int *fd);
/* Adds it to `out`, without looking at it. */
void dev_stderr_reader_append_to(int *fd, struct mk_buf *out);
/* Hands whole lines to on_line(); `rest` keeps the beginning of one, up to the end of the stream. */
void dev_stderr_reader_read_lines(int *fd, struct mk_buf *rest, void (*on_line)(void *ctx, mk_str line),
                                  void *ctx);
/* Writes the report as people read it: the cause, and the stack with its sources. */
void dev_stderr_reader_format_crash(const struct dev_stderr_reader *h, struct mk_buf *out);
void dev_stderr_reader_format_stall(const struct dev_stderr_reader *h, struct mk_buf *out);

#endif
