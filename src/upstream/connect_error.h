/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MK_UPSTREAM_CONNECT_ERROR_H
#define MK_UPSTREAM_CONNECT_ERROR_H

/* Describes a connection error (a negated errno value); static text. */
const char *mk_connect_error_text(int error);

#endif
