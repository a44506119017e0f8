/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a script's standard error line by line, in limited amounts. */
#ifndef CGI_STDERR_H
#define CGI_STDERR_H

#include <monkey/cgi.h>
#include <monkey/plugin.h>

struct cgi_stderr {
    int fd; /* -1: closed */
    struct mk_watcher *watcher;
    struct mk_worker *worker;
    struct mk_timer timer; /* resumes reading if there is more output than one loop iteration may read */
    struct mk_cgi_stderr lines;
};

/* Takes ownership of the non-blocking descriptor, even on failure. Passes each line to say(ctx), at most
 * `max` bytes in total. */
bool cgi_stderr_init(struct cgi_stderr *e, struct mk_worker *worker, int fd, uint64_t max,
                     void (*say)(void *ctx, mk_str line), void *ctx);
/* Reads the available output, up to the limit per loop iteration. */
void cgi_stderr_read(struct cgi_stderr *e);
/* Logs an incomplete last line, and closes the descriptor. */
void cgi_stderr_fini(struct cgi_stderr *e);

#endif
