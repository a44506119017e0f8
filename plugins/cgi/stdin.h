/* SPDX-License-Identifier: Apache-2.0 */
/* Streams a request body to a running script (`RequestBody stream`), and reads from the client only as
 * much as the script accepts. */
#ifndef CGI_STDIN_H
#define CGI_STDIN_H

#include "process.h"

enum { CGI_STDIN_BUF_SIZE = 64 * 1024 };

enum cgi_stdin_state {
    CGI_STDIN_CLOSED,       /* the script has received everything, or accepts no more */
    CGI_STDIN_NEEDS_CLIENT, /* waits for the client */
    CGI_STDIN_NEEDS_SCRIPT, /* waits for the script */
};

struct cgi_stdin {
    char *buf;       /* allocated while in use; else NULL */
    size_t from, to; /* range of the buffer that the script has not accepted yet */
    bool ended;      /* the client has sent everything */
};

/* Buffers a body of unknown length. Returns 1 if it is complete, and its length is therefore known; 0 if it
 * is incomplete; CGI_STDIN_TOO_LONG if it is larger than the buffer; -ENOMEM; or an error of
 * mk_request_read(). */
enum { CGI_STDIN_TOO_LONG = 2 };
int cgi_stdin_buffer_body(struct cgi_stdin *in, struct mk_request *request);

/* Passes on as much as the script accepts. Returns an enum cgi_stdin_state, an error of mk_request_read(), or
 * -ENOMEM. */
int cgi_stdin_copy_body(struct cgi_stdin *in, struct mk_request *request, struct cgi_process *process);

void cgi_stdin_fini(struct cgi_stdin *in);

#endif
