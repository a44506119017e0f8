/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a request on its way to a script, a piece at a time: nothing is read from the client that
 * the script has no room for. */
#ifndef CGI_INPUT_H
#define CGI_INPUT_H

#include "process.h"

enum { CGI_INPUT_ROOM = 64 * 1024 };

enum cgi_input_state {
    CGI_INPUT_OVER,   /* all of it was handed on, or nobody wants it */
    CGI_INPUT_CLIENT, /* waits for the client */
    CGI_INPUT_SCRIPT, /* waits for the script */
};

struct cgi_input {
    char *room;      /* on the heap while there is something to do; NULL else */
    size_t from, to; /* what of it the script has not taken */
    bool ended;      /* the client has sent all */
};

/* Reads what comes without a length into the room: 1 when that is all, and its length is known then; 0 when
 * it waits; -EFBIG when there is more than the room holds, or an error of mk_request_read(), -ENOMEM. */
int cgi_input_gather(struct cgi_input *in, struct mk_request *request);

/* Hands on what can be. An enum cgi_input_state, or an error of mk_request_read(), -ENOMEM. */
int cgi_input_pump(struct cgi_input *in, struct mk_request *request, struct cgi_process *process);

void cgi_input_fini(struct cgi_input *in);

#endif
