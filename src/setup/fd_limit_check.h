/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether the descriptor limit suffices for a configuration. */
#ifndef MK_SETUP_FD_LIMIT_CHECK_H
#define MK_SETUP_FD_LIMIT_CHECK_H

#include "setup/config_generation_type.h"

/* Warns if the master would run out of descriptors, or if its workers would have too few for connections.
 * Call it when everything except the listening sockets is open. */
void mk_fd_limit_check(const struct mk_config_generation *g, struct mk_conf_report *report);

#endif
