/* SPDX-License-Identifier: Apache-2.0 */
/* Binds unix sockets to their files. */
#ifndef MK_OS_BIND_UNIX_H
#define MK_OS_BIND_UNIX_H

#include "os/sockaddr.h"

/* Binds the socket, and creates its file with the final mode: a chmod by name afterwards could hit another
 * file. */
mk_err mk_bind_unix(int fd, const struct mk_sockaddr *a, unsigned mode) MK_MUST_USE;

#endif
