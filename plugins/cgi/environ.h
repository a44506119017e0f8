/* SPDX-License-Identifier: Apache-2.0 */
/* Variables and arguments of a script, from its request (RFC 3875, section 4). */
#ifndef CGI_ENVIRON_H
#define CGI_ENVIRON_H

#include "script.h"

/* Variables and arguments, each ended by NULL. */
struct cgi_environ {
    struct mk_buf text; /* what they point into */
    const char **envp, **argv;
};

/* `length`: of the content, -1: unknown. 0; -E2BIG when there is more than a program can take; -ENOMEM. Call
 * cgi_environ_free() in any case. */
int cgi_environ_build(struct cgi_environ *e, struct mk_request *request, const struct cgi_script *script,
                      const struct cgi_settings *settings, int64_t length);
void cgi_environ_free(struct cgi_environ *e);

#endif
