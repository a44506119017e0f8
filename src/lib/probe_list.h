/* SPDX-License-Identifier: Apache-2.0 */
/* The clients in memory of one worker. */
#ifndef MK_LIB_PROBE_LIST_H
#define MK_LIB_PROBE_LIST_H

#include "lib/probe_type.h"

void mk_probe_list_remove(struct mk_probe **first, struct mk_probe *p);
/* The worker has ended, and with it their connections. */
void mk_probe_list_forget(struct mk_probe *first);

#endif
