/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MK_UPSTREAM_CONNECT_ERROR_H
#define MK_UPSTREAM_CONNECT_ERROR_H

/* Why there is no connection to a server, for people: what a negated errno value means; static. */
const char *mk_connect_error_text(int error);

#endif
