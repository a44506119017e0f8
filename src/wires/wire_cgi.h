/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of CGI (RFC 3875, section 4.1) that FastCGI, SCGI and uwsgi hand over. */
#ifndef MK_WIRES_WIRE_CGI_H
#define MK_WIRES_WIRE_CGI_H

#include "wires/wire.h"

/* Are all variables and the length such that they can be handed over? 0, or -EINVAL with *problem. */
mk_err mk_wire_cgi_check(const struct mk_client_request *ask, const char **problem);

/* Calls add() for each variable; CONTENT_LENGTH comes first: with `always`, or if there is content. */
void mk_wire_cgi_each(const struct mk_client_request *ask, bool always,
                      void (*add)(struct mk_buf *out, mk_str name, mk_str value), struct mk_buf *out);

#endif
