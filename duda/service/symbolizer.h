/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves a logged stack to source lines with addr2line, which is part of binutils. Neither the crashed
 * process nor the event loop waits for it. */
#ifndef DUDA_SERVICE_SYMBOLIZER_H
#define DUDA_SERVICE_SYMBOLIZER_H

#include "service/duda_ctx.h"

struct duda_symbolizer_object;

/* The settings of the symbolizer in one configuration. */
struct duda_symbolizer_config {
    struct duda_symbolizer_object *objects; /* shared objects of services */
    const char *addr2line;                  /* NULL: not installed, or disabled */
    bool is_started;                        /* master_start() was called: workers may start addr2line */
};

/* Finds addr2line; called in load(). Returns false if it is not installed: stacks are then logged without
 * source lines. */
bool duda_symbolizer_find_program(struct mk_config *config, struct duda_symbolizer_config *sources);
/* Adds the shared object that contains this address, so that its frames are resolved. Returns false if out of
 * memory. */
bool duda_symbolizer_add_object(struct mk_config *config, struct duda_symbolizer_config *sources,
                                const void *address);

/* Logs the source lines of a report, asynchronously. Handles one report at a time, and skips reports that
 * arrive in the meantime. */
void duda_symbolizer_log_stack(struct duda_worker_ctx *worker_ctx, mk_str report);
void duda_symbolizer_cancel(struct duda_worker_ctx *worker_ctx);

#endif
