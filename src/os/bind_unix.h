/* SPDX-License-Identifier: Apache-2.0 */
/* Names of unix sockets. */
#ifndef MK_OS_BIND_UNIX_H
#define MK_OS_BIND_UNIX_H

#include "os/sockaddr.h"

/* Creates the file with its final mode: a chmod by name afterwards could hit another file. */
mk_err mk_bind_unix(int fd, const struct mk_sockaddr *a, unsigned mode) MK_MUST_USE;

#endif
