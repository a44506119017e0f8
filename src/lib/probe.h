/* SPDX-License-Identifier: Apache-2.0 */
/* The connection of a client in memory. */
#ifndef MK_LIB_PROBE_H
#define MK_LIB_PROBE_H

#include "base/err.h"
#include "lib/probe_type.h"

/* Opens a connection in the place of one that is closed. */
mk_err mk_probe_connect(struct mk_probe *p) MK_MUST_USE;

#endif
