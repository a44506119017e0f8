/* SPDX-License-Identifier: Apache-2.0 */
/* The socket file. It is there whole, with its rights, or not at all; a configuration that takes the place of
 * another one swaps it in one step, and swaps it back when it is not taken after all. */
#ifndef SHELL_SOCKET_H
#define SHELL_SOCKET_H

#include "cheetah.h"

/* In the master. What is wrong is reported, then -EINVAL. */
int shell_socket_open(struct mk_config *config, struct cheetah *c);
/* In whatever process; the file goes only with the one that made it, and only if it is still ours. */
void shell_socket_close(struct cheetah *c);

#endif
