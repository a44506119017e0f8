/* SPDX-License-Identifier: Apache-2.0 */
/* The script in a path, and the rest of the path. */
#ifndef CGI_SCRIPT_H
#define CGI_SCRIPT_H

#include "settings.h"

struct cgi_script {
    mk_str name;                               /* SCRIPT_NAME: the part of the path up to the script */
    mk_str info;                               /* PATH_INFO: the rest; may be empty */
    mk_str file;                               /* absolute path of the script, NUL-terminated */
    mk_str folder;                             /* folder of the script, NUL-terminated */
    const struct cgi_interpreter *interpreter; /* NULL: the script itself is executable */
    bool speaks_http;                          /* its name begins with nph- */
};

/* Finds the first prefix of the path that is a regular file in the document root. Returns 0, or the status to
 * reject the request with; 404 if there is none. */
unsigned cgi_script_find(struct mk_request *request, const struct cgi_settings *settings,
                         const struct cgi_route *route, struct cgi_script *out);

#endif
