/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of the sources behind a stack that was logged. addr2line tells them, a program of the compiler's:
 * neither the process that has crashed nor the loop waits for it. */
#ifndef DUDA_SERVICE_LINES_H
#define DUDA_SERVICE_LINES_H

#include "service/duda_type.h"

struct duda_object;

/* What they come from, in one configuration. */
struct duda_sources {
    struct duda_object *objects; /* with services */
    const char *addr2line;       /* NULL: it is not there, or not wanted */
    bool has_children;           /* the server has processes, and workers may start others */
};

/* In load(): looks for the program. False: it is not there, and nothing follows. */
bool duda_lines_load(struct mk_config *config, struct duda_sources *sources);
/* Frames of the object that has this address are asked for. False: no memory. */
bool duda_lines_know(struct mk_config *config, struct duda_sources *sources, const void *address);

/* Logs the lines of such a report, a moment later. One at a time: another one meanwhile gets none. */
void duda_lines_tell(struct duda_home *home, mk_str report);
void duda_lines_stop(struct duda_home *home);

#endif
