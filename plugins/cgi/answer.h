/* SPDX-License-Identifier: Apache-2.0 */
/* What a script says, turned into a response: its head at once, its content while it is sent. */
#ifndef CGI_ANSWER_H
#define CGI_ANSWER_H

#include "call.h"

/* Looks at what has been read: MK_NEXT as long as it is no whole head. After a local redirect, too: then it
 * is over (c->phase). */
enum mk_verdict cgi_answer_look(struct cgi_call *c, struct mk_response *response);

#endif
