/* SPDX-License-Identifier: Apache-2.0 */
/* Protocols of the service manager systemd, without its library: reports our state, and receives its
 * sockets. */
#ifndef MK_OS_SD_NOTIFY_H
#define MK_OS_SD_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Sends "READY=1", "RELOADING=1" and the like to the socket in NOTIFY_SOCKET. Succeeds without a service
 * manager. */
mk_err mk_sd_notify(const char *state) MK_MUST_USE;

/* Returns the time within which the service manager expects each "WATCHDOG=1", in milliseconds; 0: it expects
 * none from this process. Removes WATCHDOG_PID from the environment, so that a successor of this process, which
 * has another process ID, also notifies the watchdog. */
uint32_t mk_sd_watchdog_ms(void);

/* Returns the number of sockets passed by the service manager (LISTEN_FDS, LISTEN_PID); they start at
 * descriptor 3. */
unsigned mk_sd_listen_fds(void);

enum { MK_SD_LISTEN_FDS_START = 3 };

/* Does the descriptor lead to the journal (JOURNAL_STREAM)? The journal adds a timestamp and the process ID
 * to each line, and reads a priority at the start of the line, such as `<3>`. */
bool mk_sd_is_journal_stream(int fd);

#endif
