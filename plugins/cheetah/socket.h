/* SPDX-License-Identifier: Apache-2.0 */
/* The socket file, which appears with its final mode and group. A new configuration replaces it atomically,
 * and restores the previous socket if the configuration is later rejected. */
#ifndef CHEETAH_SOCKET_H
#define CHEETAH_SOCKET_H

#include "shell_type.h"

/* Creates the socket. Only the master calls this. Returns -EINVAL after reporting an error. */
int cheetah_socket_open(struct mk_config *config, struct cheetah *c);
/* Closes the socket in any process. Only the process that created the file removes it, and only if it is
 * still the same file. */
void cheetah_socket_close(struct cheetah *c);

#endif
