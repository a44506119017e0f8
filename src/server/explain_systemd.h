/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey explain --systemd`: prints a drop-in for the systemd unit with the restrictions that the configuration
 * allows. */
#ifndef MK_SERVER_EXPLAIN_SYSTEMD_H
#define MK_SERVER_EXPLAIN_SYSTEMD_H

#include "setup/config_generation_type.h"

void mk_explain_systemd(struct mk_config_generation *g, struct mk_buf *out);

#endif
