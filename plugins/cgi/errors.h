/* SPDX-License-Identifier: Apache-2.0 */
/* What a script says on its standard error, line by line and never too much at once. */
#ifndef CGI_ERRORS_H
#define CGI_ERRORS_H

#include <monkey/plugin.h>

enum { CGI_ERRORS_LINE = 800 };

struct cgi_errors {
    int fd; /* -1: closed */
    struct mk_watcher *watcher;
    struct mk_alarm *alarm; /* goes on with somebody who says more than a turn may hold */
    void (*say)(void *ctx, mk_str line);
    void *ctx;
    uint64_t left; /* bytes that are still worth a line */
    size_t len;
    char line[CGI_ERRORS_LINE];
};

/* The descriptor, non-blocking, is its own from here on, also when this fails. say(ctx) gets each line, at
 * most `max` bytes in all. */
bool cgi_errors_init(struct cgi_errors *e, struct mk_worker *worker, int fd, uint64_t max,
                     void (*say)(void *ctx, mk_str line), void *ctx);
/* Takes what is there, a turn's worth of it. */
void cgi_errors_read(struct cgi_errors *e);
/* Says what is left of a line, and closes. */
void cgi_errors_fini(struct cgi_errors *e);

#endif
