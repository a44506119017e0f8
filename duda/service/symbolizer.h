/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of the sources behind a stack that was logged. addr2line tells them, a program of the compiler's:
 * neither the process that has crashed nor the loop waits for it. */
#ifndef DUDA_SERVICE_SYMBOLIZER_H
#define DUDA_SERVICE_SYMBOLIZER_H

#include "service/duda_ctx.h"

struct duda_symbolizer_object;

/* What they come from, in one configuration. */
struct duda_symbolizer_config {
    struct duda_symbolizer_object *objects; /* with services */
    const char *addr2line;                  /* NULL: it is not there, or not wanted */
    bool has_children;                      /* the server has processes, and workers may start others */
};

/* In load(): looks for the program. False: it is not there, and nothing follows. */
bool duda_symbolizer_find_program(struct mk_config *config, struct duda_symbolizer_config *sources);
/* Frames of the object that has this address are asked for. False: no memory. */
bool duda_symbolizer_add_object(struct mk_config *config, struct duda_symbolizer_config *sources,
                                const void *address);

/* Logs the lines of such a report, a moment later. One at a time: another one meanwhile gets none. */
void duda_symbolizer_log_stack(struct duda_worker_ctx *worker_ctx, mk_str report);
void duda_symbolizer_cancel(struct duda_worker_ctx *worker_ctx);

#endif
