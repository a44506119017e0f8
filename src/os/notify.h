/* SPDX-License-Identifier: Apache-2.0 */
/* The service manager: reports our state and accepts its sockets (systemd's protocols without its
 * library). */
#ifndef MK_OS_NOTIFY_H
#define MK_OS_NOTIFY_H

#include "base/err.h"

/* Sends "READY=1", "RELOADING=1" and the like to the socket in NOTIFY_SOCKET. Succeeds without a service
 * manager. */
mk_err mk_notify(const char *state) MK_MUST_USE;

/* The number of sockets passed by the service manager (LISTEN_FDS, LISTEN_PID); they start at descriptor
 * 3. */
unsigned mk_notify_sockets(void);

enum { MK_NOTIFY_FIRST_FD = 3 };

#endif
