/* SPDX-License-Identifier: Apache-2.0 */
/* The service manager: telling it how we are, and taking sockets from it. (systemd's protocols, without its
 * library.) */
#ifndef MK_OS_NOTIFY_H
#define MK_OS_NOTIFY_H

#include "base/err.h"

/* Sends "READY=1", "RELOADING=1" and the like to the socket named by NOTIFY_SOCKET. Nobody there is no error.
 */
mk_err mk_notify(const char *state) MK_MUST_USE;

/* How many sockets the service manager opened for us (LISTEN_FDS, LISTEN_PID); they begin at descriptor 3. */
unsigned mk_notify_sockets(void);

enum { MK_NOTIFY_FIRST_FD = 3 };

#endif
