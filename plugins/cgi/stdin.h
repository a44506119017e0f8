/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a request on its way to a script that runs already (`RequestContent stream`), a piece at a
 * time: it reads nothing from the client that the script has no room for. */
#ifndef CGI_STDIN_H
#define CGI_STDIN_H

#include "process.h"

enum { CGI_STDIN_BUF_SIZE = 64 * 1024 };

enum cgi_stdin_state {
    CGI_STDIN_CLOSED,       /* the script has all of it, or takes no more */
    CGI_STDIN_NEEDS_CLIENT, /* waits for the client */
    CGI_STDIN_NEEDS_SCRIPT, /* waits for the script */
};

struct cgi_stdin {
    char *room;      /* on the heap while there is something to do; NULL else */
    size_t from, to; /* the part of it that the script has not taken */
    bool ended;      /* the client has sent all */
};

/* Reads content of unknown length into the room: 1 when all of it is there, so that its length is known; 0
 * when it waits; -EFBIG when there is more than the room holds, or an error of mk_request_read(), -ENOMEM. */
int cgi_stdin_buffer(struct cgi_stdin *in, struct mk_request *request);

/* Passes on what the script takes now. An enum cgi_stdin_state, or an error of mk_request_read(), -ENOMEM. */
int cgi_stdin_pump(struct cgi_stdin *in, struct mk_request *request, struct cgi_process *process);

void cgi_stdin_fini(struct cgi_stdin *in);

#endif
