/* SPDX-License-Identifier: Apache-2.0 */
/* Standard error of a script, read line by line in bounded amounts. */
#ifndef CGI_STDERR_H
#define CGI_STDERR_H

#include <monkey/cgi.h>
#include <monkey/plugin.h>

struct cgi_stderr {
    int fd; /* -1: closed */
    struct mk_watcher *watcher;
    struct mk_worker *worker;
    struct mk_timer timer; /* continues when there is more than one iteration may read */
    struct mk_cgi_stderr lines;
};

/* Takes ownership of the non-blocking descriptor, even on failure. say(ctx) gets each line, at most `max`
 * bytes in total. */
bool cgi_stderr_init(struct cgi_stderr *e, struct mk_worker *worker, int fd, uint64_t max,
                     void (*say)(void *ctx, mk_str line), void *ctx);
/* Reads what is available, up to the limit per iteration. */
void cgi_stderr_read(struct cgi_stderr *e);
/* Logs an incomplete last line, and closes. */
void cgi_stderr_fini(struct cgi_stderr *e);

#endif
