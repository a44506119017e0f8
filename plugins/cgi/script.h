/* SPDX-License-Identifier: Apache-2.0 */
/* The script that a path leads to, and the rest of the path. */
#ifndef CGI_SCRIPT_H
#define CGI_SCRIPT_H

#include "settings.h"

struct cgi_script {
    mk_str name;                               /* the part of the path that leads to it: SCRIPT_NAME */
    mk_str info;                               /* the rest: PATH_INFO; may be empty */
    mk_str file;                               /* its absolute name, ended by a NUL */
    mk_str folder;                             /* the folder it is in; ended by a NUL */
    const struct cgi_interpreter *interpreter; /* NULL: the script is executed itself */
    bool speaks_http;                          /* its name begins with nph- */
};

/* Looks beneath the document root for the first part of the path that is a regular file. 0; or the status to
 * refuse with; 404 means that there is none. */
unsigned cgi_script_find(struct mk_request *request, const struct cgi_settings *settings,
                         const struct cgi_route *route, struct cgi_script *out);

#endif
