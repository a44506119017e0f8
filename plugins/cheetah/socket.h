/* SPDX-License-Identifier: Apache-2.0 */
/* The socket file. It appears complete, with its mode and group. A new configuration swaps it atomically, and
 * swaps it back if it is finally rejected. */
#ifndef CHEETAH_SOCKET_H
#define CHEETAH_SOCKET_H

#include "shell_type.h"

/* Master only. -EINVAL: error, reported. */
int cheetah_socket_open(struct mk_config *config, struct cheetah *c);
/* In any process; only the one that created the file removes it, and only if it is still the same file. */
void cheetah_socket_close(struct cheetah *c);

#endif
