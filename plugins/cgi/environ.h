/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables and arguments of a script (RFC 3875, section 4). */
#ifndef CGI_ENVIRON_H
#define CGI_ENVIRON_H

#include "script.h"

/* The environment variables and the arguments of a program, as NULL-terminated arrays. */
struct cgi_environ {
    struct mk_buf text; /* the text of all variables and arguments */
    const char **envp, **argv;
};

/* `length` is the body length; -1: unknown. Returns 0, -ENOMEM, or -E2BIG if there is more than a program can
 * receive. Call cgi_environ_free() even on failure. */
int cgi_environ_build(struct cgi_environ *e, struct mk_request *request, const struct cgi_script *script,
                      const struct cgi_settings *settings, int64_t length);
void cgi_environ_free(struct cgi_environ *e);

#endif
